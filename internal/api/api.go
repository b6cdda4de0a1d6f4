// Package api is Makola's JSON interface over HTTP. A request is matched to a
// row of one route table, passes the checks in a fixed order (size, key,
// address, rate, permission), is read by a form that collects every bad field
// at once, calls one verb of a domain package, and is rendered. No rule about
// money lives here and no transaction is opened here: what this package knows
// is the interface's own words, which existing client programs compare
// literally. That is why the decoder is written by hand: leniency towards what
// those programs send, and strictness about what is ambiguous, are the product.
package api
