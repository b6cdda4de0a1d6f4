package tenant

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
)

// Service is a product on a channel. A plan has at most one rule for each.
type Service struct {
	Product Product
	Channel string // AnyChannel: all channels without their own rule
}

// Services returns every service for which a plan can have a rule. It lists the products in order, and for each product
// AnyChannel first.
func Services() (list []Service) {
	for _, product := range Products() {
		list = append(list, Service{product, AnyChannel})
		for _, n := range msisdn.Networks() {
			list = append(list, Service{product, string(n)})
		}
		if product == Payout {
			list = append(list, Service{product, ChannelBank})
		}
	}
	return list
}

var (
	productWords = map[Product]string{Collection: "Collection", Payout: "Payout", Refund: "Refund"}
	channelWords = map[string]string{AnyChannel: "all channels", ChannelBank: "bank account"}
)

// String returns the service in words, such as Payout, bank account.
func (s Service) String() string {
	return productWords[s.Product] + ", " + cmp.Or(channelWords[s.Channel], msisdn.Network(s.Channel).Name())
}

// Own returns the rule that a plan has for exactly this service.
func (s Service) Own(rules []Rule) (rule Rule, has bool) {
	for _, r := range rules {
		if r.Product == s.Product && r.Channel == s.Channel {
			return r, true
		}
	}
	return Rule{}, false
}

// PriceText returns the price in words, such as 1%, at least GHS 0.10, at most GHS 10.00.
func (r Rule) PriceText() string {
	var parts []string
	if r.Flat > 0 {
		parts = append(parts, ledger.GHS.Text(int64(r.Flat)))
	}
	if r.BasisPoints > 0 {
		parts = append(parts, r.Percent()+"%")
	}
	if len(parts) == 0 && r.Minimum == 0 {
		return "Free"
	}
	text := strings.Join(parts, " plus ")
	if r.Minimum > 0 {
		text += ", at least " + ledger.GHS.Text(int64(r.Minimum))
	}
	if r.Maximum > 0 {
		text += ", at most " + ledger.GHS.Text(int64(r.Maximum))
	}
	return strings.TrimPrefix(text, ", ")
}

// Percent returns the percentage without needless zeros, such as 1 or 0.5.
func (r Rule) Percent() string {
	return strings.TrimRight(strings.TrimRight(money.Pesewas(r.BasisPoints).String(), "0"), ".")
}

// PlanText is a plan in one line, as people write it: free, or rules such as payout/BANK=8.00+0.50%,min=1.00.
func PlanText(rules []Rule) string {
	if len(rules) == 0 {
		return "free"
	}
	var texts []string
	for _, r := range rules {
		name, price := string(r.Product), r.Flat.String()
		if r.Channel != AnyChannel {
			name += "/" + r.Channel
		}
		if r.BasisPoints > 0 {
			price += "+" + money.Pesewas(r.BasisPoints).String() + "%"
		}
		if r.Minimum > 0 {
			price += ",min=" + r.Minimum.String()
		}
		if r.Maximum > 0 {
			price += ",max=" + r.Maximum.String()
		}
		texts = append(texts, name+"="+price)
	}
	return strings.Join(texts, " ")
}

// ParseRule parses product[/channel]=price, as PlanText formats it. price is flat, percent% or flat+percent%, then
// ,min=AMOUNT and ,max=AMOUNT, in cedis.
func ParseRule(text string) (Rule, error) {
	name, price, ok := strings.Cut(text, "=")
	if !ok {
		return Rule{}, errors.New("must read like payout/BANK=8.00+0.5%,min=1,max=20")
	}
	product, channel, _ := strings.Cut(name, "/")
	r := Rule{Product: Product(product), Channel: channel}
	parts := strings.Split(price, ",")
	if err := r.parsePrice(parts[0]); err != nil {
		return Rule{}, fmt.Errorf("parse the price %q: %w", parts[0], err)
	}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		p, err := money.Parse(value)
		switch {
		case err != nil:
			return Rule{}, fmt.Errorf("%s %w", key, err)
		case key == "min":
			r.Minimum = p
		case key == "max" && p > 0:
			r.Maximum = p
		default:
			return Rule{}, errors.New("only min= and max= may follow the price, and a maximum must be above zero")
		}
	}
	return r, nil
}

// parsePrice parses flat, percent% or flat+percent%.
func (r *Rule) parsePrice(text string) (err error) {
	flat, percent, both := strings.Cut(text, "+")
	if !both && strings.HasSuffix(flat, "%") {
		flat, percent = "0", flat
	}
	if r.Flat, err = money.Parse(flat); err != nil || percent == "" && !both {
		return err
	}
	number, ok := strings.CutSuffix(percent, "%")
	if !ok {
		return errors.New("must end with %")
	}
	points, err := money.Parse(number)
	if err != nil {
		return errors.New(strconv.Quote(number) + " is no percentage with at most two decimals")
	}
	r.BasisPoints = int64(points)
	return nil
}
