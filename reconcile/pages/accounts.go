package pages

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"daesa/internal/people"
	"daesa/internal/web"
)

// deedsShown is how many lines of the trail the page of accounts shows.
const deedsShown = 200

// accountsData is everybody who may come in, and what was done.
type accountsData struct {
	Accounts []people.Account
	Roles    []people.Role
	Deeds    []people.Deed
	Given    string // a password that was just given
	To       string // and to whom
}

// accountStep is what an operator does with somebody's account.
type accountStep string

// The steps.
const (
	stepRoles    accountStep = "roles"
	stepPassword accountStep = "password"
	stepDisable  accountStep = "disable"
	stepEnable   accountStep = "enable"
)

// AccountList serves GET /accounts.
func (p *Pages) AccountList(w http.ResponseWriter, r *http.Request, _ people.Account) error {
	return p.writeAccounts(w, r, accountsData{})
}

func (p *Pages) writeAccounts(w http.ResponseWriter, r *http.Request, d accountsData) (err error) {
	d.Roles = people.Roles()
	if d.Accounts, err = p.cfg.Accounts.List(r.Context()); err != nil {
		return err
	}
	if d.Deeds, err = p.cfg.Accounts.Deeds(r.Context(), deedsShown); err != nil {
		return err
	}
	return p.write(w, r, http.StatusOK, pageAccounts, d)
}

// AddAccount serves POST /accounts: makes an account and shows its first password, once.
func (p *Pages) AddAccount(w http.ResponseWriter, r *http.Request, who people.Account) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	name := r.PostForm.Get("name")
	roles, err := people.ParseRoles(strings.Join(r.PostForm["role"], ","))
	if err != nil {
		return accountProblem(err)
	}
	password, err := p.cfg.Accounts.Add(r.Context(), people.Person(who.Name), name, roles)
	if err != nil {
		return accountProblem(err)
	}
	return p.writeAccounts(w, r, accountsData{Given: password, To: name})
}

// StepAccount serves POST /accounts/{name}/{step}. Nobody does it with their own account: whoever took their own right to
// manage accounts away could not give it back.
func (p *Pages) StepAccount(w http.ResponseWriter, r *http.Request, who people.Account) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	name, by := chi.URLParam(r, "name"), people.Person(who.Name)
	if strings.EqualFold(name, who.Name) {
		return web.WithDetail(ErrNotAllowed, "nobody changes their own account here; daesa user does, on the machine of the service")
	}
	var d accountsData
	var err error
	switch accountStep(chi.URLParam(r, "step")) {
	case stepRoles:
		var roles []people.Role
		if roles, err = people.ParseRoles(strings.Join(r.PostForm["role"], ",")); err == nil {
			err = p.cfg.Accounts.SetRoles(r.Context(), by, name, roles)
		}
	case stepPassword:
		d.To = name
		d.Given, err = p.cfg.Accounts.GivePassword(r.Context(), by, name)
	case stepDisable:
		err = p.cfg.Accounts.Disable(r.Context(), by, name)
	case stepEnable:
		err = p.cfg.Accounts.Enable(r.Context(), by, name)
	default:
		return web.ErrNoRoute
	}
	if err != nil {
		return accountProblem(err)
	}
	if d.Given == "" {
		goTo(w, r, "/accounts")
		return nil
	}
	return p.writeAccounts(w, r, d)
}

// accountProblem lets an operator read what is wrong with an account.
func accountProblem(err error) error {
	for _, known := range []error{people.ErrName, people.ErrRole, people.ErrAccountTaken, people.ErrNoAccount} {
		if errors.Is(err, known) {
			return web.WithDetail(err, known.Error())
		}
	}
	return err
}

// Has reports whether an account has a role.
func (d accountsData) Has(a people.Account, role people.Role) bool {
	return slices.Contains(a.Roles, role)
}
