package pages

import (
	"errors"
	"net/http"
	"net/url"

	"daesa/internal/people"
)

// signInData is the page to sign in on.
type signInData struct {
	Name string
	Back string
	Any  bool // there is an account at all
	Why  error
}

// Refused reports whether a sign-in was just refused.
func (d signInData) Refused() bool { return d.Why != nil }

// signInFor is the address to sign in at that comes back to what was asked for.
func signInFor(r *http.Request) string {
	if r.Method != http.MethodGet || r.URL.Path == "/" {
		return "/sign-in"
	}
	return "/sign-in?back=" + url.QueryEscape(r.URL.RequestURI())
}

// SignInPage serves GET /sign-in.
func (p *Pages) SignInPage(w http.ResponseWriter, r *http.Request) error {
	_, err := p.cfg.Sessions.Who(r.Context())
	if err == nil {
		goTo(w, r, "/")
		return nil
	}
	if !errors.Is(err, people.ErrNoAccount) {
		return err
	}
	return p.writeSignIn(w, r, http.StatusOK, signInData{Back: local(r.URL.Query().Get("back"))})
}

func (p *Pages) writeSignIn(w http.ResponseWriter, r *http.Request, status int, d signInData) (err error) {
	if d.Any, err = p.cfg.Accounts.Any(r.Context()); err != nil {
		return err
	}
	return p.write(w, r, status, pageSignIn, d)
}

// SignIn serves POST /sign-in: name and password.
func (p *Pages) SignIn(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	name, back := r.PostForm.Get("name"), local(r.PostForm.Get("back"))
	account, err := p.cfg.Accounts.SignIn(r.Context(), name, r.PostForm.Get("password"), p.source(r))
	if errors.Is(err, people.ErrSignIn) {
		return p.writeSignIn(w, r, http.StatusUnauthorized, signInData{Name: name, Back: back, Why: err})
	}
	if err != nil {
		return err
	}
	if err := p.cfg.Sessions.Begin(r.Context(), account); err != nil {
		return err
	}
	if account.MustChange {
		back = "/password"
	}
	goTo(w, r, back)
	return nil
}

// SignOut serves POST /sign-out.
func (p *Pages) SignOut(w http.ResponseWriter, r *http.Request, who people.Account) error {
	if err := p.cfg.Sessions.SignOut(r.Context(), who, p.source(r)); err != nil {
		return err
	}
	goTo(w, r, "/sign-in")
	return nil
}

// Why a password was not taken.
const (
	whyDiffers  = "The new password was typed differently the second time."
	whyPassword = "The new password needs 12 to 200 characters, and must be neither your name nor the old one."
	whyOld      = "The old password is wrong, or too many were tried."
)

// passwordData is the page on which a password is chosen.
type passwordData struct{ Why string }

// PasswordPage serves GET /password.
func (p *Pages) PasswordPage(w http.ResponseWriter, r *http.Request, _ people.Account) error {
	return p.write(w, r, http.StatusOK, pagePassword, passwordData{})
}

// ChoosePassword serves POST /password: the old one, and the new one twice.
func (p *Pages) ChoosePassword(w http.ResponseWriter, r *http.Request, who people.Account) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	form := r.PostForm
	if form.Get("chosen") != form.Get("again") {
		return p.write(w, r, http.StatusUnprocessableEntity, pagePassword, passwordData{Why: whyDiffers})
	}
	account, err := p.cfg.Accounts.Choose(r.Context(), who.Name, form.Get("old"), form.Get("chosen"), p.source(r))
	switch {
	case errors.Is(err, people.ErrPassword):
		return p.write(w, r, http.StatusUnprocessableEntity, pagePassword, passwordData{Why: whyPassword})
	case errors.Is(err, people.ErrSignIn):
		return p.write(w, r, http.StatusUnauthorized, pagePassword, passwordData{Why: whyOld})
	case err != nil:
		return err
	}
	if err := p.cfg.Sessions.Begin(r.Context(), account); err != nil {
		return err
	}
	goTo(w, r, "/")
	return nil
}
