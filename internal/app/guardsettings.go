package app

import (
	"time"

	"daesa/checkout/store"
	"daesa/pgclient"
)

// guardSettings are limits of the guard around outbound calls and of admission. Each has a declared constant with its
// evidence, in pgclient, checkout/store and internal/admission, which is what to run with; docs/guards.md says when another is right.
// The help does not list them: a limit that was chosen without a reason is worse than none.
type guardSettings struct {
	ConfirmCap      int           `name:"path-confirm-cap" env:"DAESA_PATH_CONFIRM_CAP" hidden:"" help:"Approvals at the gateway at once, over all instances."`
	ConfirmAttempt  time.Duration `name:"path-confirm-attempt" env:"DAESA_PATH_CONFIRM_ATTEMPT" hidden:"" help:"How long one attempt to approve may take."`
	ConfirmAttempts int           `name:"path-confirm-attempts" env:"DAESA_PATH_CONFIRM_ATTEMPTS" hidden:"" help:"Attempts to approve, 1 or 2."`
	QueryCap        int           `name:"path-query-cap" env:"DAESA_PATH_QUERY_CAP" hidden:"" help:"Questions of notices at the gateway at once, over all instances."`
	QueryAttempt    time.Duration `name:"path-query-attempt" env:"DAESA_PATH_QUERY_ATTEMPT" hidden:"" help:"How long a notice's question may take."`
	StoreCap        int           `name:"path-store-cap" env:"DAESA_PATH_STORE_CAP" hidden:"" help:"Questions at the store at once, over all instances."`
	StoreTotal      time.Duration `name:"path-store-total" env:"DAESA_PATH_STORE_TOTAL" hidden:"" help:"How long a question to the store may take, the wait for a slot included."`
	Breakers        bool          `name:"breakers" env:"DAESA_BREAKERS" default:"true" negatable:"" hidden:"" help:"Stop asking a gateway, and a store, that does not answer."`
	OneLine         int           `name:"one-line" env:"DAESA_ONE_LINE" hidden:"" help:"Let so many requests in at once, in one line that waits, in place of admission by class."`
}

// What follows a question that may take longer: the handler's own net under it, and the writing after it.
const (
	queryNet   = 500 * time.Millisecond
	queryWrite = time.Second
)

func (s guardSettings) apply(cfg *Config) {
	cfg.OneLine = s.OneLine
	cfg.Paths.Confirm = pgclient.Path{Cap: s.ConfirmCap, Attempt: s.ConfirmAttempt, Attempts: s.ConfirmAttempts}
	cfg.Paths.Query = pgclient.Path{Cap: s.QueryCap, Attempt: s.QueryAttempt}
	cfg.StoreLimits = store.Limits{Cap: s.StoreCap, Total: s.StoreTotal}
	if s.QueryAttempt > 0 {
		cfg.WebhookQueryBudget = max(3500*time.Millisecond, s.QueryAttempt+queryNet)
		cfg.WebhookDeadline = max(9*time.Second, cfg.WebhookQueryBudget+queryWrite)
	}
	if !s.Breakers {
		cfg.Breakers = pgclient.NeverOpen()
		cfg.StoreLimits.Breaker = cfg.Breakers.Money
	}
}
