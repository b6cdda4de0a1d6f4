package tenant

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
)

// PlanText formats a plan in one line: free, or rules such as payout/BANK=8.00+0.50%,min=1.00.
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
		return Rule{}, fmt.Errorf("the price %q: %w", parts[0], err)
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
			return Rule{}, errors.New("after the price there is only min= and max=, and a maximum is above zero")
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
		return errors.New("has no % at its end")
	}
	points, err := money.Parse(number)
	if err != nil {
		return errors.New(strconv.Quote(number) + " is no percentage with at most two decimals")
	}
	r.BasisPoints = int64(points)
	return nil
}
