package desk

import (
	"encoding/json"
	"time"

	"daesa/ledger"
	"daesa/reconcile"
)

// MismatchView is a mismatch as our API shows it. An amount that nobody knows is left out: it is not nothing. Where two
// people resolved it, the note is that of who proposed it; who proposed and who confirmed, each with their own words, is in
// confirmed.
type MismatchView struct {
	ID             int64                 `json:"mismatch_id"`
	Kind           ledger.Kind           `json:"kind"`
	Status         ledger.MismatchStatus `json:"status"`
	OrderID        string                `json:"order_id,omitempty"`
	PaymentKey     string                `json:"payment_key,omitempty"`
	TransactionKey string                `json:"transaction_key,omitempty"`
	AtRisk         string                `json:"at_risk,omitempty"`
	Currency       ledger.Currency       `json:"currency,omitempty"`
	Detail         string                `json:"detail"`
	OpenedAt       time.Time             `json:"opened_at"`
	LastSeenAt     time.Time             `json:"last_seen_at"`
	TimesSeen      int                   `json:"times_seen"`
	Assignee       ledger.Actor          `json:"assignee,omitempty"`
	Proposal       *ledger.Proposal      `json:"proposal,omitempty"`
	ResolvedAs     ledger.Resolution     `json:"resolved_as,omitempty"`
	ResolvedBy     ledger.Actor          `json:"resolved_by,omitempty"`
	ResolvedAt     *time.Time            `json:"resolved_at,omitempty"`
	Note           string                `json:"note,omitempty"`
	Confirmed      *ledger.Confirmation  `json:"confirmed,omitempty"`
	Incident       int64                 `json:"incident_id,omitempty"`
	Revision       int                   `json:"revision"`

	money ledger.Money
}

// MismatchList is one page of mismatches; the next begins before Next.
type MismatchList struct {
	Mismatches []MismatchView `json:"mismatches"`
	Next       int64          `json:"next,omitempty"`
}

// Dossier is one mismatch with the evidence of both sides and its trail.
type Dossier struct {
	MismatchView
	NeedsTwo bool               `json:"needs_second_person"`
	Gateway  json.RawMessage    `json:"gateway"`
	Books    json.RawMessage    `json:"books"`
	Trail    []ledger.TrailLine `json:"trail"`
}

// IncidentView is an incident as our API shows it.
type IncidentView struct {
	ID       int64                      `json:"incident_id"`
	Run      string                     `json:"run"`
	Status   ledger.MismatchStatus      `json:"status"`
	OpenedAt time.Time                  `json:"opened_at"`
	EndedAt  *time.Time                 `json:"ended_at,omitempty"`
	Found    int                        `json:"found"`
	Left     int                        `json:"left"`
	Unknown  int                        `json:"left_of_unknown_amount"`
	Proposed int                        `json:"left_and_proposed"`
	AtRisk   map[ledger.Currency]string `json:"at_risk"`

	money []ledger.Money
}

// IncidentList is one page of incidents; the next begins before Next.
type IncidentList struct {
	Incidents []IncidentView `json:"incidents"`
	Next      int64          `json:"next,omitempty"`
}

// PendingView is a cancel that is still owed an answer, as our API shows it.
type PendingView struct {
	WorkID         int64                 `json:"work_id"`
	Kind           ledger.WorkKind       `json:"kind"`
	Line           reconcile.PendingLine `json:"line"`
	OrderID        string                `json:"order_id,omitempty"`
	PaymentKey     string                `json:"payment_key"`
	TransactionKey string                `json:"transaction_key,omitempty"`
	RequestID      string                `json:"request_id,omitempty"`
	Amount         string                `json:"amount,omitempty"`
	Currency       ledger.Currency       `json:"currency,omitempty"`
	Attempt        *int                  `json:"attempt,omitempty"` // the redelivery that is expected next, of 7
	Attempts       int                   `json:"attempts_in_all,omitempty"`
	NextExpected   *time.Time            `json:"next_expected,omitempty"`
	LastChance     time.Time             `json:"last_chance"`
	OpenedAt       time.Time             `json:"opened_at"`
	Asked          int                   `json:"asked"`
	LastAnswer     string                `json:"last_answer,omitempty"`

	money ledger.Money
}

// PendingList is one page of what is pending; the next begins after Next.
type PendingList struct {
	Pending []PendingView `json:"pending"`
	Next    string        `json:"next,omitempty"`
}

func viewOf(m ledger.Mismatch) MismatchView {
	return MismatchView{
		ID: m.ID, Kind: m.Kind, Status: m.Status, OrderID: m.OrderID, PaymentKey: m.PaymentKey, TransactionKey: m.TransactionKey,
		AtRisk: decimal(m.AtRisk), Currency: m.AtRisk.Currency, Detail: m.Detail, OpenedAt: m.OpenedAt.UTC(), LastSeenAt: m.LastSeenAt.UTC(),
		TimesSeen: m.TimesSeen, Assignee: m.Assignee, Proposal: m.Proposal, ResolvedAs: m.ResolvedAs, ResolvedBy: m.ResolvedBy,
		ResolvedAt: present(m.ResolvedAt), Note: m.Note, Confirmed: m.Confirmed, Incident: m.Incident, Revision: m.Revision, money: m.AtRisk,
	}
}

func incidentOf(i ledger.Incident) IncidentView {
	v := IncidentView{
		ID: i.ID, Run: i.Run, Status: i.Status, OpenedAt: i.OpenedAt.UTC(), EndedAt: present(i.EndedAt), Found: i.Found, Left: i.Left,
		Unknown: i.Unknown, Proposed: i.Proposed, AtRisk: make(map[ledger.Currency]string), money: i.AtRisk,
	}
	for _, m := range i.AtRisk {
		v.AtRisk[m.Currency] = m.Decimal()
	}
	return v
}

func pendingOf(p reconcile.Pending) PendingView {
	v := PendingView{
		WorkID: p.WorkID, Kind: p.Kind, Line: p.Line, OrderID: p.OrderID, PaymentKey: p.PaymentKey, TransactionKey: p.TransactionKey,
		RequestID: p.RequestID, Amount: decimal(p.Amount), Currency: p.Amount.Currency, NextExpected: present(p.NextExpected),
		LastChance: p.LastChance.UTC(), OpenedAt: p.OpenedAt.UTC(), Asked: p.Asked, LastAnswer: p.LastAnswer, money: p.Amount,
	}
	if p.Attempt > 0 {
		v.Attempt, v.Attempts = &p.Attempt, reconcile.RedeliveriesInAll
	}
	return v
}

func decimal(m ledger.Money) string {
	if m.Currency == "" {
		return ""
	}
	return m.Decimal()
}

func present(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
