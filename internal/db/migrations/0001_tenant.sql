-- owner: tenant
-- The customers of this installation and what their transactions cost.

CREATE TABLE tenants (
  id                  TEXT NOT NULL PRIMARY KEY,
  name                TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
  mode                TEXT NOT NULL CHECK (mode IN ('test', 'live')),
  collections_enabled INTEGER NOT NULL CHECK (collections_enabled IN (0, 1)),
  blocked             INTEGER NOT NULL CHECK (blocked IN (0, 1)),
  payouts_stopped     INTEGER NOT NULL CHECK (payouts_stopped IN (0, 1)),
  wallet_limit        INTEGER NOT NULL CHECK (wallet_limit > 0),
  bank_limit          INTEGER NOT NULL CHECK (bank_limit > 0),
  fee_bearer          TEXT NOT NULL CHECK (fee_bearer IN ('merchant', 'customer')),
  created_at          INTEGER NOT NULL,
  updated_at          INTEGER NOT NULL
);

-- A plan is replaced as a whole by its next version and never changed. The
-- tenant '' has the plans of everybody who has none.
CREATE TABLE fee_plans (
  tenant         TEXT NOT NULL,
  version        INTEGER NOT NULL UNIQUE CHECK (version > 0),
  effective_from INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  PRIMARY KEY (tenant, version)
);

-- The channel '' has what every channel of the product without a rule costs.
-- Amounts are pesewas; a maximum of 0 is none.
CREATE TABLE fee_rules (
  tenant       TEXT NOT NULL,
  version      INTEGER NOT NULL,
  product      TEXT NOT NULL,
  channel      TEXT NOT NULL,
  flat         INTEGER NOT NULL CHECK (flat >= 0),
  basis_points INTEGER NOT NULL CHECK (basis_points BETWEEN 0 AND 10000),
  minimum      INTEGER NOT NULL CHECK (minimum >= 0),
  maximum      INTEGER NOT NULL CHECK (maximum = 0 OR maximum >= minimum),
  PRIMARY KEY (tenant, version, product, channel)
);
