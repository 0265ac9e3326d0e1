package pages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"

	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/ledger"
)

// Replayer takes a delivery up again: the gateway is asked about its payment now, and what it says is recorded, or is only
// shown when it is not to be kept.
type Replayer interface {
	Replay(ctx context.Context, deliveryID int64, keep bool) (Replayed, error)
}

// Replayed is what taking a delivery up again comes to.
type Replayed struct {
	Was, Outcome string // of the delivery, then and now
	Reason       string
	Word         string         // the gateway's own for the payment
	Recorded     ledger.Outcome // what the books make of the answer; "" where they refuse it
	Detail       string
	Changes      []ledger.RowChange
	Kept         bool
}

// ErrNoDelivery means that there is no such delivery, or none any more.
var ErrNoDelivery = errors.New("there is no such delivery")

// keptDelivery is a delivery with what is kept of its body.
type keptDelivery struct {
	delivery

	Source string          `db:"source"`
	Hash   string          `db:"hash"` // SHA-256 of the bytes that came, as hex
	Bytes  int             `db:"body_bytes"`
	Body   json.RawMessage `db:"body"` // masked; nil where nothing is kept
}

// deliveryData is one delivery, and what taking it up again comes to.
type deliveryData struct {
	Delivery  keptDelivery
	Kept      bool // something of its body is
	MaySee    bool
	MayReplay bool
	Body      json.RawMessage // where somebody who may has asked for it
	Replayed  *Replayed
	Reason    string // that its replay was given
}

// Delivery serves GET /deliveries/{delivery_id}. Who may see personal data is shown the masked body on request, which stands
// in the trail before it is shown.
func (p *Pages) Delivery(w http.ResponseWriter, r *http.Request, who people.Account) error {
	kept, err := p.delivery(r)
	if err != nil {
		return err
	}
	d := deliveryOf(kept, who)
	if r.URL.Query().Get("body") == "shown" && d.MaySee && d.Kept {
		if err := p.noteOf(r, who, people.ActionNoticeSeen, kept.ID, ""); err != nil {
			return err
		}
		d.Body = kept.Body
	}
	return p.write(w, r, http.StatusOK, pageDelivery, d)
}

// RehearseDelivery serves POST /deliveries/{delivery_id}/rehearse: what taking it up again would change, rolled back.
func (p *Pages) RehearseDelivery(w http.ResponseWriter, r *http.Request, who people.Account) error {
	return p.replay(w, r, who, people.ActionRehearsed, "")
}

// ReplayDelivery serves POST /deliveries/{delivery_id}/replay: it is taken up again, for a reason that stands in the trail
// before anything is done.
func (p *Pages) ReplayDelivery(w http.ResponseWriter, r *http.Request, who people.Account) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	if reason == "" || !ledger.PlainText(reason, people.ReasonMost) {
		return fmt.Errorf("the reason: %w", ledger.ErrNote)
	}
	return p.replay(w, r, who, people.ActionReplayed, reason)
}

func (p *Pages) replay(w http.ResponseWriter, r *http.Request, who people.Account, action people.Action, reason string) error {
	kept, err := p.delivery(r)
	if err != nil {
		return err
	}
	if err := p.noteOf(r, who, action, kept.ID, reason); err != nil {
		return err
	}
	done, err := p.cfg.Replayer.Replay(r.Context(), kept.ID, action == people.ActionReplayed)
	if err != nil {
		return web.WithDetail(fmt.Errorf("take delivery %d up again: %w", kept.ID, err), err.Error())
	}
	d := deliveryOf(kept, who)
	d.Replayed, d.Reason = &done, reason
	return p.write(w, r, http.StatusOK, pageDelivery, d)
}

func deliveryOf(kept keptDelivery, who people.Account) deliveryData {
	return deliveryData{Delivery: kept, Kept: kept.Body != nil, MaySee: who.May(people.MaySeePersonal), MayReplay: who.May(people.MayReplay)}
}

// noteOf puts what is done with a delivery into the trail.
func (p *Pages) noteOf(r *http.Request, who people.Account, action people.Action, id int64, reason string) error {
	return p.cfg.Accounts.Note(r.Context(), people.Deed{
		By: people.Person(who.Name), Action: action, Subject: "delivery " + strconv.FormatInt(id, 10), Detail: reason, Source: p.source(r),
	})
}

// delivery reads the delivery of the path. ErrNoDelivery.
func (p *Pages) delivery(r *http.Request) (keptDelivery, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "delivery_id"), 10, 64)
	if err != nil || id <= 0 {
		return keptDelivery{}, ErrNoDelivery
	}
	rows, err := p.cfg.DB.Query(r.Context(), `
		SELECT `+deliveryColumns+`, source, encode(body_hash, 'hex') AS hash, body_bytes, body
		FROM deliveries
		WHERE delivery_id = @delivery_id`, pgx.StrictNamedArgs{"delivery_id": id})
	if err != nil {
		return keptDelivery{}, fmt.Errorf("read delivery %d: %w", id, err)
	}
	kept, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[keptDelivery])
	if errors.Is(err, pgx.ErrNoRows) {
		return keptDelivery{}, ErrNoDelivery
	}
	if err != nil {
		return keptDelivery{}, fmt.Errorf("read delivery %d: %w", id, err)
	}
	return kept, nil
}
