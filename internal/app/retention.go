package app

import (
	"errors"
	"time"

	"daesa/checkout"
	"daesa/reconcile"
	"daesa/webhook"
)

// RetentionDays says for how many days each class of data is kept; docs/retention.md has the table. Zero is the
// default of the class.
type RetentionDays struct {
	KeepBodies    int `name:"keep-bodies-days" env:"DAESA_KEEP_BODIES_DAYS" default:"90" help:"Days for masked bodies of deliveries."`
	KeepStrangers int `name:"keep-strangers-days" env:"DAESA_KEEP_STRANGERS_DAYS" default:"30" help:"Days for deliveries that name nothing of ours."`
	KeepStatuses  int `name:"keep-statuses-days" env:"DAESA_KEEP_STATUSES_DAYS" default:"90" help:"Days for deliveries of statuses that are no cancel."`
	KeepNotices   int `name:"keep-notices-days" env:"DAESA_KEEP_NOTICES_DAYS" default:"396" help:"Days for deliveries about cancels of ours."`
	KeepRuns      int `name:"keep-runs-days" env:"DAESA_KEEP_RUNS_DAYS" default:"60" help:"Days for polls and audits that went well."`
	KeepFindings  int `name:"keep-findings-days" env:"DAESA_KEEP_FINDINGS_DAYS" default:"396" help:"Days for all other reads and audits; those of days stay."`
	KeepWork      int `name:"keep-work-days" env:"DAESA_KEEP_WORK_DAYS" default:"396" help:"Days for work after it was closed."`
	KeepStrange   int `name:"keep-strange-rows-days" env:"DAESA_KEEP_STRANGE_ROWS_DAYS" default:"1830" help:"Days for rows of the list without money or of other systems; captures and cancels stay."`
	KeepEvents    int `name:"keep-events-days" env:"DAESA_KEEP_EVENTS_DAYS" default:"396" help:"Days for events that were delivered."`
	KeepRequests  int `name:"keep-caller-requests-days" env:"DAESA_KEEP_CALLER_REQUESTS_DAYS" default:"15" help:"Days in which a caller may repeat a request and get its reply."`
}

// retention is how long each part keeps what it writes.
type retention struct {
	webhook   webhook.Keep
	reconcile reconcile.Keep
	checkout  checkout.Keep
}

// keep is the settings as each part takes them.
func (s RetentionDays) keep() retention {
	of := func(days int) time.Duration { return time.Duration(days) * 24 * time.Hour }
	return retention{
		webhook:   webhook.Keep{Bodies: of(s.KeepBodies), Strangers: of(s.KeepStrangers), Statuses: of(s.KeepStatuses), Notices: of(s.KeepNotices)},
		reconcile: reconcile.Keep{Runs: of(s.KeepRuns), Findings: of(s.KeepFindings), Work: of(s.KeepWork), Strange: of(s.KeepStrange)},
		checkout:  checkout.Keep{CallerRequests: of(s.KeepRequests), Events: of(s.KeepEvents)},
	}
}

// validate turns a number of days down that no clock can count.
func (s RetentionDays) validate() error {
	for _, days := range []int{
		s.KeepBodies, s.KeepStrangers, s.KeepStatuses, s.KeepNotices, s.KeepRuns, s.KeepFindings, s.KeepWork, s.KeepStrange,
		s.KeepEvents, s.KeepRequests,
	} {
		if days < 0 || days > 36_500 {
			return errors.New("set every DAESA_KEEP_…_DAYS to between 0, which is the default, and 36,500 days")
		}
	}
	return nil
}
