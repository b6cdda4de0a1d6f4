package operations

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sample"
)

// Sample creates a data folder with sample history.
type Sample struct {
	Data   string    `name:"data" default:"./makola-sample" placeholder:"FOLDER" help:"Folder to create. It must not exist, or must be empty."`
	Days   int       `name:"days" default:"90" help:"Number of days of history, 3 to 366."`
	Until  frame.Day `name:"until" placeholder:"DATE" help:"Day after the last day of history, in UTC. Default: the history ends at the last full hour."`
	Seed   uint64    `name:"seed" default:"1" help:"Seed of the history. The same seed and days give the same history."`
	Output string    `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"Format of the output: table, json or csv."`
}

// Validate refuses an empty folder, like every command's.
func (c *Sample) Validate() error { return config.Storage{Data: c.Data}.Validate() }

// madeSample is a sample as it is printed.
type madeSample struct {
	sample.Made
	took time.Duration
}

var sampleColumns = []frame.Column[madeSample]{
	{Name: "folder", Value: func(m madeSample) any { return m.Folder }},
	{Name: "from", Value: func(m madeSample) any { return m.From.Format(time.DateOnly) }},
	{Name: "until", Value: func(m madeSample) any { return m.To.Format(time.DateOnly) }},
	{Name: "payments", Value: func(m madeSample) any { return int64(m.Payments) }},
	{Name: "failing", Value: func(m madeSample) any { return int64(m.Failing) }},
	{Name: "stuck", Value: func(m madeSample) any { return int64(m.Stuck) }},
	{Name: "campaigns", Value: func(m madeSample) any { return int64(m.Campaigns) }},
	{Name: "one_time_passwords", Value: func(m madeSample) any { return int64(m.OTPs) }},
	{Name: "webhooks", Value: func(m madeSample) any { return int64(m.Webhooks) }},
	{Name: "sender_ids_in_review", Value: func(m madeSample) any { return int64(m.InReview) }},
	{Name: "took_seconds", Value: func(m madeSample) any { return seconds(m.took.Seconds()) }},
}

// Run makes the sample, and prints the command that shows it.
func (c *Sample) Run(e *frame.Env) error {
	machine := clock.Real()
	begun := machine.Now()
	if c.Until.Or(begun).After(begun) {
		return problem.Field("until", "must not be later than today")
	}
	secret, err := frame.MasterKey()
	if err != nil {
		return frame.Unusable(err)
	}
	bar := barOn(e.Stderr, "Making the sample")
	made, err := sample.Make(e.Ctx, sample.Options{Folder: c.Data, Days: c.Days, Until: c.Until.Value, Seed: c.Seed, Secret: secret, Version: e.Version,
		Progress: func(done, total time.Duration) { bar(int64(done), int64(total)) }})
	bar(0, 0)
	if err != nil {
		return err
	}
	if err := frame.PrintOne(e.Stdout, c.Output, sampleColumns, madeSample{made, machine.Since(begun)}); err != nil {
		return err
	}
	fmt.Fprintf(e.Stderr, "View it with: makola serve --data %s\n", shellWord(made.Folder))
	return nil
}

// shellWord quotes a text as one word of a shell command.
func shellWord(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:-") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// barOn shows the progress of a long command as a bar on a terminal. A total of 0 removes the bar. Elsewhere it shows
// nothing.
func barOn(w io.Writer, what string) func(done, total int64) {
	if !frame.Terminal(w) {
		return func(int64, int64) {}
	}
	return barLine(w, what)
}

// progressWidth is the width of a full bar, in characters.
const progressWidth = 40

func barLine(w io.Writer, what string) func(done, total int64) {
	const clear = "\r\x1b[K"
	shown := int64(-1) // percent
	return func(done, total int64) {
		if total <= 0 {
			if shown >= 0 {
				fmt.Fprint(w, clear)
			}
			return
		}
		percent := min(100, 100*(done/1_000)/max(1, total/1_000))
		if percent == shown {
			return
		}
		shown = percent
		full := int(percent * progressWidth / 100)
		fmt.Fprintf(w, "%s%s [%s%s] %d %%", clear, what, strings.Repeat("#", full), strings.Repeat(".", progressWidth-full), percent)
	}
}
