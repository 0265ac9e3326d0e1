package app

import (
	"cmp"
	"context"
	"log/slog"

	"daesa/ledger/seal"
)

// headsSuffix makes the name of the file that heads are written to from that of the key.
const headsSuffix = ".heads"

// newSealer reads the key, where one is set. Running without is allowed, and shown: in the log, by a metric, by daesa
// verify.
func newSealer(ctx context.Context, a *App) (*seal.Sealer, error) {
	cfg := seal.Config{DB: a.db, Metrics: seal.NewMetrics(a.registry), Log: a.log, Now: a.cfg.Now, DatabaseNow: a.cfg.DatabaseNow}
	if a.cfg.SealKeyFile == "" {
		a.log.LogAttrs(ctx, slog.LevelWarn, "the journal is not sealed: no DAESA_SEAL_KEY_FILE is set")
		return seal.New(cfg)
	}
	key, err := seal.ReadKey(a.cfg.SealKeyFile)
	if err != nil {
		return nil, err
	}
	for _, path := range a.cfg.SealOldKeys {
		old, err := seal.ReadPublicKey(path)
		if err != nil {
			return nil, err
		}
		cfg.OldKeys = append(cfg.OldKeys, old)
	}
	cfg.Key, cfg.Witness = key, seal.NewWitness(cmp.Or(a.cfg.HeadsFile, a.cfg.SealKeyFile+headsSuffix))
	return seal.New(cfg)
}
