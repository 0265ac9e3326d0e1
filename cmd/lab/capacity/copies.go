package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"daesa/cmd/lab/harness"
	"daesa/internal/postgres"
	"daesa/internal/stage"
)

const (
	modelOrder    = "model-order-0001"
	modelCustomer = "model-customer"
	modelWon      = 10_000
	modelCredits  = 100
)

// sell sells the model through the service.
func sell(ctx context.Context, service *harness.Instance, gateway *harness.Gateway) (m model, err error) {
	shop := stage.NewShop(service.URL)
	if err := shop.Order(ctx, stage.Sale{OrderID: modelOrder, Won: modelWon, Customer: modelCustomer, Credits: modelCredits}); err != nil {
		return m, err
	}
	key, err := gateway.Authenticate(ctx, modelOrder, modelWon)
	if err != nil {
		return m, err
	}
	reply, err := shop.Confirm(ctx, key, modelOrder, modelWon)
	if err != nil {
		return m, err
	}
	m.names = map[name]string{
		orderName: modelOrder, keyName: key, captureName: "", cancelName: "", customerName: modelCustomer, transmissionName: "",
	}
	if err := reply.Expect("confirming the model", http.StatusOK, "done"); err != nil {
		return m, err
	}
	return m.told(ctx, gateway)
}

// cancel cancels the model in the gateway's dashboard. Its notice waits to be sent.
func (m model) cancel(ctx context.Context, gateway *harness.Gateway) (model, error) {
	if err := gateway.Cancel(ctx, m.names[keyName]); err != nil {
		return m, err
	}
	m, err := m.told(ctx, gateway)
	if err == nil && m.names[cancelName] == "" {
		err = errors.New("the gateway has no notice that the model was canceled")
	}
	return m, err
}

// told adds what the gateway has told of the model so far: names of transactions, and the notices themselves.
func (m model) told(ctx context.Context, gateway *harness.Gateway) (model, error) {
	notices, err := gateway.Notices(ctx)
	if err != nil {
		return m, err
	}
	for _, n := range notices {
		var says struct {
			Data json.RawMessage `json:"data"`
		}
		var object struct {
			Status  string `json:"status"`
			Last    string `json:"lastTransactionKey"`
			Cancels []struct {
				Key string `json:"transactionKey"`
			} `json:"cancels"`
		}
		if err := errors.Join(json.Unmarshal(n.Body, &says), json.Unmarshal(says.Data, &object)); err != nil {
			return m, fmt.Errorf("read the gateway's notices: %w", err)
		}
		switch object.Status {
		case "DONE":
			m.names[captureName], m.paid = object.Last, n.Body
		case "CANCELED":
			m.names[cancelName], m.notice, m.payment = object.Cancels[0].Key, n.Body, says.Data
		}
	}
	if m.names[captureName] == "" {
		return m, errors.New("the gateway has no notice that the model was paid")
	}
	return m, nil
}

// give gives the gateway n copies of the model, canceled like it.
func (m model) give(ctx context.Context, gateway *harness.Gateway, n int) error {
	object := m.patternOf(m.payment)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := 1; i <= n; i++ {
		group.Go(func() error { return gateway.Put(ctx, object.of(i)) })
	}
	return group.Wait()
}

// copied are the tables that a sale is written to, and which row of each is the model's.
func copied() [][2]string {
	return [][2]string{
		{"orders", "order_id = @order"},
		{"payments", "payment_key = @key"},
		{"captures", "payment_key = @key"},
		{"journal_transactions", "payment_key = @key"},
		{"credit_accounts", "customer_id = @customer"},
		{"events", "payment_key = @key"},
	}
}

// copy writes copies of what the service wrote when it sold the model, with other names: n that will be canceled, and a
// history of as many that have been told of before, each in one delivery. Triggers are silent: what they check holds for
// the copies as for the model, and the whole is checked afterwards.
func (m model) copy(ctx context.Context, db *pgxpool.Pool, n, history int) error {
	args := pgx.StrictNamedArgs{"order": m.names[orderName], "key": m.names[keyName], "customer": m.names[customerName], "copies": n + history}
	err := postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL session_replication_role = replica; SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		for _, table := range copied() {
			sql, err := m.copyStatement(ctx, tx, table[0], table[1])
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, sql, only(sql, args)); err != nil {
				return fmt.Errorf("%s: %w", table[0], err)
			}
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
			SELECT made.transaction_id, e.line, e.account, e.currency, e.amount
			FROM journal_transactions model
			JOIN journal_entries e ON e.transaction_id = model.transaction_id
			JOIN journal_transactions made ON made.kind = model.kind AND made.payment_key <> model.payment_key
			WHERE model.payment_key = @key
			ORDER BY made.transaction_id, e.line`, only("@key", args))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO deliveries (received_at, source, event_type, word, payment_key, order_id, body, body_hash, body_bytes, outcome, status, answered_at)
			SELECT p.created_at - age.of, '192.0.2.1', 'PAYMENT_STATUS_CHANGED', 'DONE', p.payment_key, p.order_id, @body::text::jsonb,
				sha256(convert_to(p.payment_key, 'UTF8')), octet_length(@body::text), 'status_ignored', 200, p.created_at - age.of
			FROM generate_series(@from::integer, @to::integer) AS copy (n)
			JOIN payments p ON p.payment_key = (@first::bigint + copy.n)::text
			CROSS JOIN LATERAL (SELECT interval '1 minute' * (@to - copy.n) AS of) AS age
			ORDER BY copy.n`,
			pgx.StrictNamedArgs{"body": string(m.paid), "from": n + 1, "to": n + history, "first": int64(keyName) * spread})
		return err
	})
	if err != nil {
		return fmt.Errorf("copy the model: %w", err)
	}
	if _, err := db.Exec(ctx, `VACUUM (ANALYZE)`); err != nil {
		return fmt.Errorf("gather statistics: %w", err)
	}
	return nil
}

// copyStatement writes the copies of one table's row: every text in it with the names of each payment in turn.
func (m model) copyStatement(ctx context.Context, tx pgx.Tx, table, which string) (string, error) {
	rows, err := tx.Query(ctx, `
		SELECT column_name::text, data_type::text FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name = @table AND is_generated = 'NEVER' AND is_identity = 'NO'
		ORDER BY ordinal_position`, pgx.StrictNamedArgs{"table": table})
	if err != nil {
		return "", fmt.Errorf("%s: %w", table, err)
	}
	type column struct{ Name, Type string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		return "", fmt.Errorf("%s: %w", table, err)
	}
	var into, values []string
	for _, c := range columns {
		value := "model." + c.Name
		switch {
		case table == "events" && c.Name == "event_id":
			value = fmt.Sprintf("'%s' || (%d + copy.n)", eventPrefix(0), int64(orderName)*spread)
		case c.Name == "written_by":
			value = "pg_current_xact_id()"
		case c.Type == "text":
			value = m.renamed(value)
		case c.Type == "jsonb":
			value = m.renamed(value+"::text") + "::jsonb"
		}
		into, values = append(into, c.Name), append(values, value)
	}
	return "INSERT INTO " + table + " (" + strings.Join(into, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" FROM generate_series(1, @copies::integer) AS copy (n) CROSS JOIN (SELECT " + strings.Join(into, ", ") + " FROM " + table +
		" WHERE " + which + ") AS model ORDER BY copy.n", nil
}

func (m model) renamed(value string) string {
	for _, k := range names() {
		if known := m.names[k]; known != "" {
			value = fmt.Sprintf("replace(%s, '%s', (%d + copy.n)::text)", value, known, int64(k)*spread)
		}
	}
	return value
}

// only are the arguments that a statement has.
func only(sql string, args pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	some := pgx.StrictNamedArgs{}
	for name, value := range args {
		if strings.Contains(sql, "@"+name) {
			some[name] = value
		}
	}
	return some
}

// databases makes copies of a database on the same server.
type databases struct {
	admin *pgxpool.Pool
	base  *url.URL
	made  []string
}

// openDatabases reaches the server that a database is on.
func openDatabases(ctx context.Context, address string) (*databases, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("read the server's address: %w", err)
	}
	d := &databases{base: base}
	d.admin, err = postgres.Open(ctx, postgres.Config{URL: d.address("postgres"), MaxConns: 2, ApplicationName: "lab"})
	return d, err
}

func (d *databases) address(name string) string {
	at := *d.base
	at.Path = "/" + name
	return at.String()
}

// copyOf makes a database that is what the first one was, and returns its address. Both are on disk when it returns.
func (d *databases) copyOf(ctx context.Context, suffix string) (string, error) {
	from := strings.TrimPrefix(d.base.Path, "/")
	name := from + "_" + suffix
	d.made = append(d.made, name)
	for _, sql := range []string{
		`DROP DATABASE IF EXISTS ` + pgx.Identifier{name}.Sanitize() + ` WITH (FORCE)`,
		`CREATE DATABASE ` + pgx.Identifier{name}.Sanitize() + ` TEMPLATE ` + pgx.Identifier{from}.Sanitize() + ` STRATEGY file_copy`,
	} {
		if _, err := d.admin.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("make database %s: %w", name, err)
		}
	}
	return d.address(name), nil
}

// close removes every copy.
func (d *databases) close(ctx context.Context) error {
	defer d.admin.Close()
	var errs []error
	for _, name := range slices.Compact(slices.Sorted(slices.Values(d.made))) {
		if _, err := d.admin.Exec(ctx, `DROP DATABASE IF EXISTS `+pgx.Identifier{name}.Sanitize()+` WITH (FORCE)`); err != nil {
			errs = append(errs, fmt.Errorf("remove database %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
