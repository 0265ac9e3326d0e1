package people

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Role is what somebody is here for. One person may have several.
type Role string

// The roles.
const (
	RoleViewer   Role = "viewer"   // sees the books, changes nothing
	RoleFinance  Role = "finance"  // works on mismatches, signs days
	RoleApprover Role = "approver" // is the second person as well
	RoleOperator Role = "operator" // runs the service, and makes accounts
)

// Roles lists every role.
func Roles() []Role { return []Role{RoleViewer, RoleFinance, RoleApprover, RoleOperator} }

// Permission is one thing that somebody may do or see.
type Permission string

// The permissions.
const (
	MayView        Permission = "view"            // overview, days, mismatches, orders, trial balance, deliveries; no personal data
	MayExport      Permission = "export"          // take any of that away as a file
	MayAsk         Permission = "ask_gateway"     // have the gateway asked about a payment now
	MayWork        Permission = "work"            // acknowledge, assign, note and resolve mismatches
	MaySign        Permission = "sign"            // sign a day
	MayConfirm     Permission = "confirm"         // confirm, as the second person, what somebody else proposed
	MaySeePersonal Permission = "see_personal"    // bodies of notices and answers, masked as they are kept
	MayReplay      Permission = "replay"          // take a delivery up again
	MayRunJobs     Permission = "run_jobs"        // the job queue
	MayManage      Permission = "manage_accounts" // accounts, their roles, and the trail of everybody
)

// Permissions lists every permission.
func Permissions() []Permission {
	return []Permission{
		MayView, MayExport, MayAsk, MayWork, MaySign, MayConfirm, MaySeePersonal, MayReplay, MayRunJobs, MayManage,
	}
}

// Allows is the whole matrix. Who runs the service does not work on its books, and who works on them does not run it: for
// both, one person has both roles, which everybody sees.
func (r Role) Allows(p Permission) bool {
	var all []Permission
	switch r {
	case RoleViewer:
		all = []Permission{MayView, MayExport}
	case RoleFinance:
		all = []Permission{MayView, MayExport, MayAsk, MayWork, MaySign}
	case RoleApprover:
		all = []Permission{MayView, MayExport, MayAsk, MayWork, MaySign, MayConfirm}
	case RoleOperator:
		all = []Permission{MayView, MayExport, MayAsk, MaySeePersonal, MayReplay, MayRunJobs, MayManage}
	}
	return slices.Contains(all, p)
}

// ErrRole reports a role that there is not, or none at all.
var ErrRole = errors.New("roles are viewer, finance, approver and operator, at least one")

// ParseRoles reads roles as they are written: finance,approver. The order and the repetition of what is written is lost.
func ParseRoles(text string) ([]Role, error) { return parseWords(text, Roles(), ErrRole) }

// FormatRoles writes roles as [ParseRoles] reads them.
func FormatRoles(roles []Role) string { return formatWords(roles) }

// parseWords reads words of a closed set, with commas between them, and returns each once, in the order of the set.
func parseWords[T ~string](text string, known []T, unknown error) ([]T, error) {
	var words []T
	for written := range strings.SplitSeq(text, ",") {
		word := T(strings.TrimSpace(written))
		if !slices.Contains(known, word) {
			return nil, fmt.Errorf("%.40q: %w", written, unknown)
		}
		words = append(words, word)
	}
	slices.SortFunc(words, func(a, b T) int { return slices.Index(known, a) - slices.Index(known, b) })
	return slices.Compact(words), nil
}

// formatWords writes words as [parseWords] reads them.
func formatWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ",")
}
