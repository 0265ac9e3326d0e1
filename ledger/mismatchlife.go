package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MismatchStatus is how far people are with a mismatch.
type MismatchStatus string

// The statuses of a mismatch.
const (
	MismatchOpen         MismatchStatus = "open"
	MismatchAcknowledged MismatchStatus = "acknowledged" // somebody is looking into it
	MismatchResolved     MismatchStatus = "resolved"
)

// MismatchStatuses lists every status.
func MismatchStatuses() []MismatchStatus {
	return []MismatchStatus{MismatchOpen, MismatchAcknowledged, MismatchResolved}
}

// Resolution is why a mismatch is none any more.
type Resolution string

// The resolutions. Only the service resolves by itself, and only by what both books say.
const (
	ResolvedAuto     Resolution = "auto"     // both books agree by now
	ResolvedFixed    Resolution = "fixed"    // a person has put it right
	ResolvedAccepted Resolution = "accepted" // a person accepts the difference, and says why
)

// Resolutions lists every resolution.
func Resolutions() []Resolution {
	return []Resolution{ResolvedAuto, ResolvedFixed, ResolvedAccepted}
}

// TrailAction is what one line of a mismatch's trail says was done.
type TrailAction string

// The actions of a trail.
const (
	TrailOpened       TrailAction = "opened"
	TrailSeenChanged  TrailAction = "seen_changed" // found again with other money
	TrailAcknowledged TrailAction = "acknowledged"
	TrailAssigned     TrailAction = "assigned"
	TrailProposed     TrailAction = "resolution_proposed"
	TrailWithdrawn    TrailAction = "resolution_withdrawn"
	TrailResolved     TrailAction = "resolved"
	TrailReopened     TrailAction = "reopened"
	TrailNoted        TrailAction = "noted"
	TrailJoined       TrailAction = "joined_incident"
)

// TrailActions lists every action.
func TrailActions() []TrailAction {
	return []TrailAction{
		TrailOpened, TrailSeenChanged, TrailAcknowledged, TrailAssigned, TrailProposed, TrailWithdrawn, TrailResolved,
		TrailReopened, TrailNoted, TrailJoined,
	}
}

// Step is what a person does with a mismatch.
type Step string

// The steps.
const (
	StepAcknowledge Step = "acknowledge"
	StepAssign      Step = "assign"
	StepResolve     Step = "resolve"  // above the amount: propose
	StepConfirm     Step = "confirm"  // a second person resolves as proposed
	StepWithdraw    Step = "withdraw" // the proposal falls
	StepReopen      Step = "reopen"
	StepNote        Step = "note"
)

// Steps lists every step.
func Steps() []Step {
	return []Step{StepAcknowledge, StepAssign, StepResolve, StepConfirm, StepWithdraw, StepReopen, StepNote}
}

var (
	// ErrStep reports a step that the mismatch's status does not allow. Nothing changed.
	ErrStep = errors.New("the mismatch does not allow this now")
	// ErrSecondPerson reports somebody who would confirm their own proposal. Nothing changed.
	ErrSecondPerson = errors.New("who proposed it cannot confirm it")
	// ErrNote reports a note that is missing where one must be, or cannot be kept.
	ErrNote = errors.New("the note is missing or cannot be kept")
	// ErrResolution reports a resolution that a person cannot give.
	ErrResolution = errors.New("resolve as fixed or as accepted")
	// ErrUnfixable reports a contradiction within what the gateway says that somebody would resolve as fixed. Nothing changed.
	ErrUnfixable = errors.New("the gateway contradicts itself: where its list does, it ends by itself when the list reads well; or accept it and say why")
	// ErrMoved reports a mismatch that changed since the caller looked at it. Nothing changed.
	ErrMoved = errors.New("the mismatch has changed since")
	// ErrRequestEnd reports a statement about a cancel request of ours that the books do not bear out. Nothing changed.
	ErrRequestEnd = errors.New("the books do not bear this end of the cancel out")
)

// RequestEnd is what a person states, by evidence they have seen, of a cancel of ours whose answer nobody will ever
// know. Done is stated with the cancel's transaction key and must stand in the books under it already.
type RequestEnd struct {
	Status         CancelRequestStatus `json:"status"` // done or refused
	TransactionKey string              `json:"transaction_key,omitempty"`
}

// Proposal is how a first person wants a mismatch resolved.
type Proposal struct {
	As       Resolution  `json:"as"`
	By       Actor       `json:"by"`
	At       time.Time   `json:"at"`
	Note     string      `json:"note"`
	Request  *RequestEnd `json:"request,omitempty"`
	Incident int64       `json:"incident,omitempty"` // proposed for a whole storm
}

// Confirmation is how a second person resolved a mismatch as a first one had proposed.
type Confirmation struct {
	Proposed Proposal  `json:"proposed"`
	By       Actor     `json:"by"`
	At       time.Time `json:"at"`
	Note     string    `json:"note,omitempty"` // the second person's own words, if any
}

// Mismatch is a contradiction between the gateway's books and ours.
type Mismatch struct {
	ID             int64
	Kind           Kind
	Status         MismatchStatus
	PaymentKey     string
	OrderID        string
	TransactionKey string
	AtRisk         Money // without a currency when nobody knows
	Detail         string
	Gateway        json.RawMessage
	Books          json.RawMessage
	OpenedAt       time.Time
	LastSeenAt     time.Time
	TimesSeen      int
	Assignee       Actor
	Proposal       *Proposal
	ResolvedAs     Resolution
	ResolvedBy     Actor
	ResolvedAt     time.Time
	Note           string        // why it was resolved: the words of who resolved it alone, or of who proposed it
	Confirmed      *Confirmation // where two people resolved it
	Incident       int64
	Revision       int
	ChangedAt      time.Time
}

// requestPrefix marks the transaction key of a mismatch about a cancel request of ours.
const requestPrefix = "request:"

// RequestSubject is the transaction key of a mismatch about a cancel request of ours, which has no other.
func RequestSubject(requestID string) string { return requestPrefix + requestID }

// requestID is the cancel request that the mismatch is about.
func (m Mismatch) requestID() (string, bool) {
	return strings.CutPrefix(m.TransactionKey, requestPrefix)
}

// Change is one step of a person.
type Change struct {
	Step     Step
	By       Actor
	Note     string
	As       Resolution  // of StepResolve
	To       Actor       // of StepAssign; "" = nobody
	Request  *RequestEnd // of StepResolve, for a mismatch about a cancel request of ours
	Revision int         // what the caller has seen; 0 = whatever it is
}

// noteMax bounds what is kept of a person's words. A longer note is refused, not cut.
const noteMax = 2000

func (c Change) check() error {
	switch {
	case !c.By.Person():
		return fmt.Errorf("a person must do this: %w", ErrActor)
	case utf8.RuneCountInString(c.Note) > noteMax:
		return fmt.Errorf("at most %d characters: %w", noteMax, ErrNote)
	case !utf8.ValidString(c.Note) || strings.ContainsRune(c.Note, 0):
		return fmt.Errorf("not plain text: %w", ErrNote)
	}
	return nil
}

// step works out what a person's step makes of the mismatch. Pure: a step that is not allowed changes nothing.
func (m Mismatch) step(c Change, two SecondPerson, now time.Time) (Mismatch, error) {
	c.Note = strings.TrimSpace(c.Note)
	if err := c.check(); err != nil {
		return m, err
	}
	if c.Revision != 0 && c.Revision != m.Revision {
		return m, fmt.Errorf("it is at revision %d: %w", m.Revision, ErrMoved)
	}
	switch c.Step {
	case StepAcknowledge:
		if m.Status != MismatchOpen {
			return m, fmt.Errorf("it is %s: %w", m.Status, ErrStep)
		}
		m.Status = MismatchAcknowledged
		return m, nil
	case StepAssign:
		if m.Status == MismatchResolved {
			return m, fmt.Errorf("it is resolved: %w", ErrStep)
		}
		m.Assignee = c.To
		return m, nil
	case StepResolve:
		return m.resolve(c, two, now)
	case StepConfirm:
		return m.confirm(c, now)
	case StepWithdraw:
		if m.Proposal == nil {
			return m, fmt.Errorf("nobody has proposed a resolution: %w", ErrStep)
		}
		m.Proposal = nil
		return m, nil
	case StepReopen:
		if m.Status != MismatchResolved {
			return m, fmt.Errorf("it is %s: %w", m.Status, ErrStep)
		}
		m.Status, m.ResolvedAs, m.ResolvedBy, m.ResolvedAt, m.Note, m.Incident, m.Confirmed = MismatchOpen, "", "", time.Time{}, "", 0, nil
		return m, nil
	case StepNote:
		if c.Note == "" {
			return m, fmt.Errorf("say something: %w", ErrNote)
		}
		return m, nil
	}
	return m, fmt.Errorf("%q: %w", c.Step, ErrStep)
}

// resolve resolves, or proposes to where a second person is needed.
func (m Mismatch) resolve(c Change, two SecondPerson, now time.Time) (Mismatch, error) {
	if err := m.resolvable(c); err != nil {
		return m, err
	}
	p := Proposal{As: c.As, By: c.By, At: now, Note: c.Note, Request: c.Request}
	if two.Needed(m.AtRisk) {
		m.Proposal = &p
		return m, nil
	}
	return m.resolved(p, c.By, now), nil
}

func (m Mismatch) resolvable(c Change) error {
	_, aboutRequest := m.requestID()
	switch {
	case c.As != ResolvedFixed && c.As != ResolvedAccepted:
		return fmt.Errorf("%q: %w", c.As, ErrResolution)
	case m.Status == MismatchResolved:
		return fmt.Errorf("it is resolved: %w", ErrStep)
	case m.Proposal != nil:
		return fmt.Errorf("%s has proposed a resolution; confirm or withdraw it: %w", m.Proposal.By, ErrStep)
	case c.As == ResolvedFixed && m.unfixable():
		return ErrUnfixable
	case c.Note == "" && (c.As == ResolvedAccepted || c.Request != nil):
		return fmt.Errorf("say why: %w", ErrNote)
	case c.Request == nil:
		return nil
	case !aboutRequest:
		return fmt.Errorf("it is not about a cancel request of ours: %w", ErrRequestEnd)
	case c.Request.Status == CancelRequestDone && c.Request.TransactionKey != "":
		return nil
	case c.Request.Status == CancelRequestRefused && c.Request.TransactionKey == "":
		return nil
	}
	return fmt.Errorf("say that it never happened, or under which transaction key it did: %w", ErrRequestEnd)
}

// unfixable reports whether the gateway's list contradicts itself about one transaction. No comparison of the two books
// would find that again, so nobody's word that it was put right ends it: the list that reads well does, by itself, or a
// person who accepts what it says.
func (m Mismatch) unfixable() bool {
	switch m.Kind { //nolint:exhaustive // all others are found again where they are not put right
	case KindHistoryChanged, KindQuarantined, KindUnrecognized:
		return m.TransactionKey != ""
	}
	return false
}

// fixable is the same of rows m of mismatches, the other way round.
const fixable = `(m.transaction_key IS NULL OR m.kind NOT IN ('history_changed', 'quarantined', 'unrecognized_status'))`

func (m Mismatch) confirm(c Change, now time.Time) (Mismatch, error) {
	switch {
	case m.Proposal == nil:
		return m, fmt.Errorf("nobody has proposed a resolution: %w", ErrStep)
	case c.By.Same(m.Proposal.By):
		return m, fmt.Errorf("%s: %w", m.Proposal.By, ErrSecondPerson)
	case m.Proposal.As == ResolvedFixed && m.unfixable():
		return m, ErrUnfixable
	}
	return m.resolved(*m.Proposal, c.By, now), nil
}

func (m Mismatch) resolved(p Proposal, by Actor, now time.Time) Mismatch {
	m.Status, m.ResolvedAs, m.ResolvedBy, m.ResolvedAt, m.Note, m.Proposal = MismatchResolved, p.As, by, now, p.Note, nil
	return m
}
