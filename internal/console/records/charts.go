package records

import (
	"fmt"
	"time"

	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
)

const (
	day = 24 * time.Hour
	// ChartDays is how many days the charts of days have, today included.
	ChartDays = 30
	// weekDays is the number of days with which today is compared.
	weekDays = 7
)

// ChartKinds are the kinds of payments in the order of charts.
var ChartKinds = []book.Kind{book.KindCollection, book.KindPayout, book.KindTopUp, book.KindBundle}

func cedis(pesewas int64) string { return page.Cedis(money.Pesewas(pesewas)) }

// volumes returns the successful amounts by kind. place returns the point of a figure, or -1.
func volumes(list []figures.Figure, points int, place func(time.Time) int) []page.Series {
	series := make([]page.Series, len(ChartKinds))
	for k, kind := range ChartKinds {
		series[k] = page.Series{Name: words.KindsWords[kind], Values: make([]int64, points)}
	}
	for _, f := range list {
		i := place(f.At)
		if f.Status != book.StatusSuccess || i < 0 || i >= points {
			continue
		}
		for k, kind := range ChartKinds {
			if f.Kind == kind {
				series[k].Values[i] += int64(f.Amount)
			}
		}
	}
	return series
}

// Days returns the charts of the days before and with today: the successful amounts by kind, and the rate of success.
func Days(list []figures.Figure, now time.Time) (volume, rate page.Chart) {
	first := now.UTC().Truncate(day).Add(-(ChartDays - 1) * day)
	place := func(at time.Time) int { return int(at.Sub(first) / day) }
	labels := make([]string, ChartDays)
	totals := make([]figures.Total, ChartDays)
	for i := range labels {
		labels[i] = first.Add(time.Duration(i) * day).Format("2 Jan")
	}
	for _, f := range list {
		if i := place(f.At); i >= 0 && i < ChartDays {
			totals[i].Add(f)
		}
	}
	rates := make([]int64, ChartDays)
	for i, t := range totals {
		rates[i] = -1
		if tenths, known := t.Rate(); known {
			rates[i] = tenths
		}
	}
	return page.Chart{Title: "Successful payments, 30 days", Labels: labels, Series: volumes(list, ChartDays, place), Text: cedis},
		page.Chart{Title: "Success rate, 30 days", Labels: labels, Line: true, Series: []page.Series{{Name: "Success rate", Values: rates}}, Top: 1000, Text: page.Tenths}
}

// Hours returns the chart of today's hours beside the average of the same hours of the last seven days. list has the hours of both.
func Hours(list []figures.Figure, now time.Time) page.Chart {
	today := now.UTC().Truncate(day)
	labels := make([]string, 24)
	for i := range labels {
		labels[i] = fmt.Sprintf("%02d:00", i)
	}
	average := &page.Series{Name: "Average of the last 7 days", Values: make([]int64, 24)}
	for _, f := range list {
		if f.Status == book.StatusSuccess && f.At.Before(today) && !f.At.Before(today.Add(-weekDays*day)) {
			average.Values[f.At.UTC().Hour()] += int64(f.Amount)
		}
	}
	for i := range average.Values {
		average.Values[i] /= weekDays
	}
	series := volumes(list, 24, func(at time.Time) int {
		if at.Before(today) {
			return -1
		}
		return at.UTC().Hour()
	})
	return page.Chart{Title: "Successful payments by hour, today", Labels: labels, Series: series, Beside: average, Text: cedis}
}

// A Pace compares the successful payments of one kind today with the last seven days.
type Pace struct {
	Kind    book.Kind
	Today   figures.Total
	ToHour  money.Pesewas // amount of today's hours that have ended
	Average money.Pesewas // average of the same hours on the last seven days
}

// Paces returns the pace of each kind that has payments in these eight days.
func Paces(list []figures.Figure, now time.Time) (paces []Pace) {
	today, hour := now.UTC().Truncate(day), now.UTC().Hour()
	for _, kind := range ChartKinds {
		p, any := Pace{Kind: kind}, false
		for _, f := range list {
			if f.Kind != kind {
				continue
			}
			any = true
			done := f.Status == book.StatusSuccess && f.At.UTC().Hour() < hour
			if !f.At.Before(today) {
				p.Today.Add(f)
				if done {
					p.ToHour += f.Amount
				}
			} else if done && !f.At.Before(today.Add(-weekDays*day)) {
				p.Average += f.Amount
			}
		}
		p.Average /= weekDays
		if any {
			paces = append(paces, p)
		}
	}
	return paces
}

// CountedTo returns the time up to which figures are complete.
func CountedTo(to time.Time) string {
	if to.IsZero() {
		return "Figures are being counted for the first time and are not complete yet."
	}
	return "Figures are complete to " + page.When(to) + ". A payment counts on the day on which it was accepted."
}
