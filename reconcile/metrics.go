package reconcile

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"daesa/ledger"
	"daesa/pgclient"
)

// Metrics counts and shows what is owed, what the list and the audits say, and what is wrong.
type Metrics struct {
	workOpen, workOldest, workOverdue      *prometheus.GaugeVec
	workDue                                *prometheus.GaugeVec
	unknownPayments, unknownAge            prometheus.Gauge
	unknownAmount                          *prometheus.GaugeVec
	sweptTotal, resentTotal                *prometheus.CounterVec
	repaired, listRows                     prometheus.Counter
	listRuns                               *prometheus.CounterVec
	mirrorLag, neverRead, unclosed         prometheus.Gauge
	auditVerdict, auditLast                *prometheus.GaugeVec
	differenceCount, differenceAmount      *prometheus.GaugeVec
	breaks                                 *prometheus.GaugeVec
	drifted                                *prometheus.CounterVec
	mismatchesOpen, mismatchesAmountAtRisk *prometheus.GaugeVec
	incidentsOpen, incidentsLeft           prometheus.Gauge
	incidentsAmountAtRisk, pending         *prometheus.GaugeVec
	pendingAttempts                        *prometheus.GaugeVec
	pendingLastChance, pendingNext         prometheus.Gauge
}

// moneyCurrencies are the currencies that amounts are shown in, each in its minor unit.
func moneyCurrencies() []ledger.Currency {
	return []ledger.Currency{ledger.KRW, ledger.USD, ledger.JPY}
}

// NewMetrics registers the metrics, every series at zero.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Name: "daesa_reconcile_" + name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Name: "daesa_reconcile_" + name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: "daesa_reconcile_" + name, Help: help}, labels)
	}
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "daesa_reconcile_" + name, Help: help})
	}
	m := &Metrics{
		workOpen:               gauges("work_open", "Open work by kind: answers still owed.", "kind"),
		workOldest:             gauges("work_oldest_age_seconds", "Age of the oldest open work by kind; zero when there is none.", "kind"),
		workOverdue:            gauges("work_past_deadline", "Open work past its deadline by kind. For cancels that is past the last chance.", "kind"),
		workDue:                gauges("work_due", "Open work by kind that is due and waits to be asked about. Claims are many after a storm of notices, whose questions are bounded.", "kind"),
		unknownPayments:        gauge("unknown_payments", "Payments whose confirm has an outcome that nobody knows yet."),
		unknownAge:             gauge("unknown_oldest_age_seconds", "Age of the oldest payment in doubt; zero when there is none."),
		unknownAmount:          gauges("unknown_amount_minor", "Money of payments in doubt, minor units.", "currency"),
		sweptTotal:             counters("swept_total", "Questions about open work by kind and what they came to.", "kind", "result"),
		resentTotal:            counters("resent_total", "Confirms and cancels sent again with their first key, by the gateway's verdict.", "kind", "verdict"),
		repaired:               counter("work_repaired_total", "Payments in doubt found without open work. Any is a bug; they got work."),
		listRuns:               counters("list_runs_total", "Reads of the gateway's list by what they were for and how they ended.", "reason", "result"),
		listRows:               counter("list_rows_total", "Rows read from the gateway's list."),
		mirrorLag:              gauge("mirror_lag_seconds", "How long ago the instant lies up to which the gateway's list was read completely."),
		neverRead:              gauge("never_read_seconds", "How much of the time since the books were opened, but for the newest, the gateway's list was never read for."),
		unclosed:               gauge("unclosed_day_seconds", "How long ago the oldest business day ended that no closing run has seen whole, counted from the first audit where that is later; zero when there is none."),
		auditVerdict:           gauges("audit_verdict", "1 for the verdict of the last audit of a scope, 0 for the others.", "scope", "verdict"),
		auditLast:              gauges("audit_last_run_timestamp_seconds", "When the last audit of a scope ran, whatever it said.", "scope"),
		differenceCount:        gauges("identity_unexplained", "Cancels at the gateway that the last audit of a scope could not explain.", "scope"),
		differenceAmount:       gauges("identity_unexplained_minor", "Money at the gateway that the last audit of a scope could not explain, minor units.", "scope", "currency"),
		breaks:                 gauges("audit_breaks", "Contradictions in the last audit of a scope.", "scope"),
		drifted:                counters("audit_drift_total", "Keys and sums that the running audit had wrong when a scope compared in full. Any is a bug; they were repaired.", "scope"),
		mismatchesOpen:         gauges("mismatches_open", "Mismatches not yet resolved, by kind; those of an open incident are counted there.", "kind"),
		mismatchesAmountAtRisk: gauges("mismatches_at_risk_minor", "Money at risk in mismatches not yet resolved, minor units.", "currency"),
		incidentsOpen:          gauge("incidents_open", "Storms of mismatches that are not over."),
		incidentsLeft:          gauge("incidents_mismatches", "Mismatches not yet resolved that belong to an open incident."),
		incidentsAmountAtRisk:  gauges("incidents_at_risk_minor", "Money at risk in mismatches not yet resolved of open incidents, minor units.", "currency"),
		pending:                gauges("pending_cancels", "Cancels still owed an answer, by how they are doing by the clock.", "line"),
		pendingAttempts:        gauges("pending_attempts", "Cancels still owed an answer, by the redelivery of 7 that is expected next; 0: no notice has come.", "attempt"),
		pendingNext:            gauge("pending_next_expected_seconds", "Time until the next redelivery of a pending cancel's notice is expected; infinite when none is."),
		pendingLastChance:      gauge("pending_last_chance_seconds", "Time until the soonest last chance of a pending cancel that is not past it; infinite when there is none."),
	}
	m.start()
	return m
}

// start creates every series, so that absent never means zero.
func (m *Metrics) start() {
	for _, k := range ledger.WorkKinds() {
		m.workOpen.WithLabelValues(string(k))
		m.workOldest.WithLabelValues(string(k))
		m.workOverdue.WithLabelValues(string(k))
		m.workDue.WithLabelValues(string(k))
		for _, r := range Results() {
			m.sweptTotal.WithLabelValues(string(k), string(r))
		}
	}
	for _, k := range []ledger.WorkKind{ledger.WorkConfirmUnknown, ledger.WorkCancelRequest} {
		for _, v := range pgclient.Verdicts() {
			m.resentTotal.WithLabelValues(string(k), string(v))
		}
	}
	for _, r := range Reasons() {
		m.listRuns.WithLabelValues(string(r), "complete")
		m.listRuns.WithLabelValues(string(r), "failed")
	}
	for _, s := range ScopeNames() {
		for _, v := range Verdicts() {
			m.auditVerdict.WithLabelValues(string(s), string(v))
		}
		m.auditLast.WithLabelValues(string(s))
		m.differenceCount.WithLabelValues(string(s))
		m.breaks.WithLabelValues(string(s))
		m.drifted.WithLabelValues(string(s))
		for _, c := range moneyCurrencies() {
			m.differenceAmount.WithLabelValues(string(s), string(c))
		}
	}
	for _, k := range ledger.Kinds() {
		m.mismatchesOpen.WithLabelValues(string(k))
	}
	for _, l := range PendingLines() {
		m.pending.WithLabelValues(string(l))
	}
	for n := range RedeliveriesInAll + 1 {
		m.pendingAttempts.WithLabelValues(strconv.Itoa(n))
	}
	m.pendingNext.Set(math.Inf(1))
	m.pendingLastChance.Set(math.Inf(1))
	for _, c := range moneyCurrencies() {
		m.mismatchesAmountAtRisk.WithLabelValues(string(c))
		m.incidentsAmountAtRisk.WithLabelValues(string(c))
		m.unknownAmount.WithLabelValues(string(c))
	}
}

func (m *Metrics) swept(kind ledger.WorkKind, r Result) {
	m.sweptTotal.WithLabelValues(string(kind), string(r)).Inc()
}

func (m *Metrics) resent(kind ledger.WorkKind, v pgclient.Verdict) {
	m.resentTotal.WithLabelValues(string(kind), string(v)).Inc()
}

func (m *Metrics) listed(reason Reason, result string, rows int) {
	m.listRuns.WithLabelValues(string(reason), result).Inc()
	m.listRows.Add(float64(rows))
}

// audited shows the last audit of a scope.
func (m *Metrics) audited(s Statement, now time.Time) {
	for _, v := range Verdicts() {
		value := 0.0
		if v == s.Verdict {
			value = 1
		}
		m.auditVerdict.WithLabelValues(string(s.Scope), string(v)).Set(value)
	}
	m.auditLast.WithLabelValues(string(s.Scope)).Set(float64(now.Unix()))
	if s.Verdict == VerdictError {
		return
	}
	m.breaks.WithLabelValues(string(s.Scope)).Set(float64(s.breaks()))
	m.drifted.WithLabelValues(string(s.Scope)).Add(float64(s.drifted))
	count := 0
	for _, c := range moneyCurrencies() {
		amount := int64(0)
		for _, sum := range s.Sums {
			if sum.Currency == c {
				count += sum.Unexplained.Count
				amount = sum.Unexplained.Amount
			}
		}
		m.differenceAmount.WithLabelValues(string(s.Scope), string(c)).Set(float64(amount))
	}
	m.differenceCount.WithLabelValues(string(s.Scope)).Set(float64(count))
}

// gaugeRow is one figure that the database knows.
type gaugeRow struct {
	Gauge string `db:"gauge"`
	Label string `db:"label"`
	Value int64  `db:"value"`
}

// measure refreshes the gauges from the rows, so that they are right in every process and after every restart.
func (s *Sweeper) measure(ctx context.Context) error {
	now := s.cfg.now()
	rows, err := s.cfg.DB.Query(ctx, `
		SELECT 'open' AS gauge, kind AS label, count(*)::bigint AS value FROM work WHERE closed_at IS NULL GROUP BY kind
		UNION ALL
		SELECT 'oldest', kind, extract(epoch FROM @now::timestamptz - min(opened_at))::bigint FROM work WHERE closed_at IS NULL GROUP BY kind
		UNION ALL
		SELECT 'overdue', kind, count(*) FROM work WHERE closed_at IS NULL AND deadline < @now GROUP BY kind
		UNION ALL SELECT 'due', kind, count(*) FROM work WHERE closed_at IS NULL AND due_at <= @now GROUP BY kind
		UNION ALL
		SELECT 'unknown', '', count(*) FROM payments WHERE undecided_since IS NOT NULL
		UNION ALL
		SELECT 'unknown_age', '', COALESCE(extract(epoch FROM @now::timestamptz - min(undecided_since)), 0)::bigint
		FROM payments WHERE undecided_since IS NOT NULL
		UNION ALL
		SELECT 'unknown_amount', currency, sum(amount)::bigint FROM payments WHERE undecided_since IS NOT NULL GROUP BY currency
		UNION ALL
		SELECT 'mismatch', m.kind, count(*) FROM mismatches m
		WHERE m.status <> 'resolved' AND NOT EXISTS (SELECT 1 FROM incidents i WHERE i.incident_id = m.incident_id AND i.status = 'open')
		GROUP BY m.kind
		UNION ALL
		SELECT 'incidents', '', count(*) FROM incidents WHERE status = 'open'
		UNION ALL
		SELECT 'incident_left', '', count(*) FROM incidents i
		JOIN mismatches m ON m.incident_id = i.incident_id AND m.status <> 'resolved' WHERE i.status = 'open'
		UNION ALL
		SELECT 'incident_at_risk', m.currency, sum(m.amount)::bigint FROM incidents i
		JOIN mismatches m ON m.incident_id = i.incident_id AND m.status <> 'resolved'
		WHERE i.status = 'open' AND m.currency IS NOT NULL AND m.amount IS NOT NULL GROUP BY m.currency
		UNION ALL
		SELECT 'pending', l.line, count(*) FROM (
			SELECT `+pendingLine+` AS line FROM work w WHERE w.closed_at IS NULL AND w.kind IN `+pendingKinds+`) l GROUP BY l.line
		UNION ALL
		SELECT 'last_chance', '', extract(epoch FROM min(w.deadline) - @now::timestamptz)::bigint
		FROM work w WHERE w.closed_at IS NULL AND w.deadline > @now AND w.kind IN `+pendingKinds+` HAVING count(*) > 0
		UNION ALL
		SELECT 'attempts', COALESCE(LEAST(w.notice_attempt + 1, @redeliveries::integer), 0)::text, count(*)
		FROM work w WHERE w.closed_at IS NULL AND w.kind IN `+pendingKinds+` GROUP BY 2
		UNION ALL
		SELECT 'next', '', extract(epoch FROM min(w.notice_next_at) - @now::timestamptz)::bigint
		FROM work w WHERE w.closed_at IS NULL AND w.notice_next_at > @now AND w.kind IN `+pendingKinds+` HAVING count(*) > 0
		UNION ALL
		SELECT 'at_risk', currency, sum(amount)::bigint FROM mismatches
		WHERE status <> 'resolved' AND currency IS NOT NULL AND amount IS NOT NULL GROUP BY currency
		UNION ALL
		SELECT 'lag', '', extract(epoch FROM @now::timestamptz - upper(stretches))::bigint FROM list_covered
		UNION ALL
		SELECT 'never_read', '', COALESCE(sum(extract(epoch FROM upper(g) - lower(g))), 0)::bigint
		FROM list_covered, unnest(tstzmultirange(tstzrange(LEAST(@opening, upper(stretches)), upper(stretches))) - stretches) AS g
		WHERE @opened
		UNION ALL
		SELECT 'unclosed', '', extract(epoch FROM @now::timestamptz - GREATEST(
			(min(d) + interval '1 day') AT TIME ZONE 'Asia/Seoul', min(first.audit)))::bigint
		FROM (SELECT min(started_at) AS audit FROM audit_runs WHERE scope = 'recent') AS first
		CROSS JOIN (SELECT d FROM `+closable+` UNION ALL SELECT m.day::timestamp FROM days_to_close m WHERE m.day < @oldest::date) AS days
		LEFT JOIN LATERAL (
			SELECT true AS whole FROM audit_runs r WHERE r.day = d::date AND r.closed IS NOT NULL LIMIT 1) r ON true
		WHERE r.whole IS NULL
		HAVING min(first.audit) IS NOT NULL`,
		s.cfg.closable(now, pgx.StrictNamedArgs{
			"late": now.Add(-lateAfter), "redeliveries": RedeliveriesInAll, "opening": s.cfg.OpeningAt.Truncate(time.Second), "opened": !s.cfg.OpeningAt.IsZero(),
		}))
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	figures, err := pgx.CollectRows(rows, pgx.RowToStructByName[gaugeRow])
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	s.cfg.Metrics.show(figures)
	return nil
}

// show sets every gauge; what the query did not name is zero.
func (m *Metrics) show(figures []gaugeRow) {
	at := map[string]int64{}
	for _, f := range figures {
		at[f.Gauge+"|"+f.Label] = f.Value
	}
	value := func(gauge, label string) float64 { return float64(at[gauge+"|"+label]) }
	for _, k := range ledger.WorkKinds() {
		m.workOpen.WithLabelValues(string(k)).Set(value("open", string(k)))
		m.workOldest.WithLabelValues(string(k)).Set(value("oldest", string(k)))
		m.workOverdue.WithLabelValues(string(k)).Set(value("overdue", string(k)))
		m.workDue.WithLabelValues(string(k)).Set(value("due", string(k)))
	}
	for _, k := range ledger.Kinds() {
		m.mismatchesOpen.WithLabelValues(string(k)).Set(value("mismatch", string(k)))
	}
	for _, c := range moneyCurrencies() {
		m.mismatchesAmountAtRisk.WithLabelValues(string(c)).Set(value("at_risk", string(c)))
		m.unknownAmount.WithLabelValues(string(c)).Set(value("unknown_amount", string(c)))
		m.incidentsAmountAtRisk.WithLabelValues(string(c)).Set(value("incident_at_risk", string(c)))
	}
	for _, l := range PendingLines() {
		m.pending.WithLabelValues(string(l)).Set(value("pending", string(l)))
	}
	for n := range RedeliveriesInAll + 1 {
		m.pendingAttempts.WithLabelValues(strconv.Itoa(n)).Set(value("attempts", strconv.Itoa(n)))
	}
	m.pendingNext.Set(math.Inf(1))
	if left, some := at["next|"]; some {
		m.pendingNext.Set(float64(left))
	}
	m.pendingLastChance.Set(math.Inf(1))
	if left, some := at["last_chance|"]; some {
		m.pendingLastChance.Set(float64(left))
	}
	m.incidentsOpen.Set(value("incidents", ""))
	m.incidentsLeft.Set(value("incident_left", ""))
	m.unknownPayments.Set(value("unknown", ""))
	m.unknownAge.Set(value("unknown_age", ""))
	m.mirrorLag.Set(value("lag", ""))
	m.neverRead.Set(value("never_read", ""))
	m.unclosed.Set(value("unclosed", ""))
}

// repairs counts payments in doubt that had lost their work.
func (m *Metrics) repairs(n int64) { m.repaired.Add(float64(n)) }
