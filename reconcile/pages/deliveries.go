package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"daesa/internal/people"
)

// deliveriesPage is how many deliveries one page shows, and deliveriesLooked how many are looked through for an outcome that
// few have: the next page goes on from there.
const (
	deliveriesPage   = 50
	deliveriesLooked = 5000
)

// delivery is one delivery of a notice.
type delivery struct {
	ID         int64      `db:"delivery_id"`
	ReceivedAt time.Time  `db:"received_at"`
	Retried    *int       `db:"retried_count"`
	SentAt     *time.Time `db:"sent_at"`
	EventType  string     `db:"event_type"`
	Word       string     `db:"word"`
	PaymentKey string     `db:"payment_key"`
	OrderID    string     `db:"order_id"`
	Outcome    string     `db:"outcome"`
	Reason     string     `db:"reason"`
	Status     *int       `db:"status"`
	AnsweredMS *int       `db:"answered_ms"`
	QueryMS    *int       `db:"query_ms"`
	Reaped     bool       `db:"reaped"`
}

// deliveryColumns are those of a delivery, by the names of its fields.
const deliveryColumns = `delivery_id, received_at, retried_count, sent_at, event_type, word, COALESCE(payment_key, '') AS payment_key,
	COALESCE(order_id, '') AS order_id, outcome, reason, status,
	(extract(epoch FROM answered_at - received_at) * 1000)::integer AS answered_ms, query_ms, reaped`

// Attempt is which delivery of its notice it was: 0 the first, then the redelivery of 7.
func (d delivery) Attempt() string {
	if d.Retried == nil {
		return ""
	}
	return strconv.Itoa(*d.Retried) + "/7"
}

// deliveriesData is a list of deliveries.
type deliveriesData struct {
	Deliveries []delivery
	PaymentKey string
	Outcome    string
	Outcomes   []string
	More       string
	Looked     bool // the list ends because enough was looked through
}

// Deliveries serves GET /deliveries: newest first, of one payment or with one outcome.
func (p *Pages) Deliveries(w http.ResponseWriter, r *http.Request, _ people.Account) error {
	query := r.URL.Query()
	d := deliveriesData{PaymentKey: query.Get("payment_key"), Outcome: query.Get("outcome"), Outcomes: p.cfg.Outcomes}
	if len(d.PaymentKey) > 300 || !utf8.ValidString(d.PaymentKey) || strings.ContainsRune(d.PaymentKey, 0) ||
		d.Outcome != "" && !slices.Contains(p.cfg.Outcomes, d.Outcome) {
		return fmt.Errorf("the filter: %w", ErrForm)
	}
	before, err := deliveryCursor(query.Get("before"))
	if err != nil {
		return err
	}
	of := ""
	args := pgx.StrictNamedArgs{"before_at": before.at, "before": before.id, "looked": deliveriesLooked, "outcome": d.Outcome, "limit": deliveriesPage + 1}
	if d.PaymentKey != "" {
		of = `AND payment_key = @payment_key`
		args["payment_key"] = d.PaymentKey
	}
	rows, err := p.cfg.DB.Query(r.Context(), `
		WITH looked AS MATERIALIZED (
			SELECT delivery_id, received_at, retried_count, sent_at, event_type, word, payment_key, order_id, outcome, reason, status,
				answered_at, query_ms, reaped
			FROM deliveries
			WHERE (received_at, delivery_id) < (@before_at, @before) `+of+`
			ORDER BY received_at DESC, delivery_id DESC
			LIMIT @looked)
		SELECT `+deliveryColumns+`
		FROM looked
		WHERE @outcome = '' OR outcome = @outcome
		   OR delivery_id = (SELECT delivery_id FROM looked ORDER BY received_at, delivery_id OFFSET @looked - 1 LIMIT 1)
		ORDER BY received_at DESC, delivery_id DESC
		LIMIT @limit`, args)
	if err != nil {
		return fmt.Errorf("list deliveries: %w", err)
	}
	if d.Deliveries, err = pgx.CollectRows(rows, pgx.RowToStructByName[delivery]); err != nil {
		return fmt.Errorf("list deliveries: %w", err)
	}
	d.turn(query)
	return p.write(w, r, http.StatusOK, pageDeliveries, d)
}

// turn says where the next page begins. The last row of all that were looked through comes with them, whatever its outcome:
// it is where to go on.
func (d *deliveriesData) turn(query url.Values) {
	n := len(d.Deliveries)
	if n == 0 {
		return
	}
	last := d.Deliveries[n-1]
	switch {
	case n > deliveriesPage:
		last = d.Deliveries[deliveriesPage-1]
		d.Deliveries = d.Deliveries[:deliveriesPage]
	case d.Outcome != "" && last.Outcome != d.Outcome:
		d.Deliveries, d.Looked = d.Deliveries[:n-1], true
	default:
		return
	}
	query.Set("before", cursor{last.ReceivedAt, last.ID}.String())
	d.More = "/deliveries?" + query.Encode()
}

// cursor is where a page of deliveries ended.
type cursor struct {
	at time.Time
	id int64
}

func (c cursor) String() string { return fmt.Sprintf("%d.%d", c.at.UnixMicro(), c.id) }

// deliveryCursor reads where a page begins; nothing is the newest.
func deliveryCursor(text string) (cursor, error) {
	if text == "" {
		return cursor{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 0}, nil
	}
	var micro, id int64
	if n, err := fmt.Sscanf(text, "%d.%d", &micro, &id); n != 2 || err != nil || micro < 0 || id < 0 {
		return cursor{}, fmt.Errorf("the page's beginning: %w", ErrForm)
	}
	return cursor{time.UnixMicro(micro), id}, nil
}
