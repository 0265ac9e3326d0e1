package app

// admissionSettings say who is let in, and how fast.
type admissionSettings struct {
	Admission        string   `env:"DAESA_ADMISSION" enum:"enforce,record" default:"enforce" help:"enforce, or record: count what would be refused and refuse nothing."`
	TrustedProxies   []string `name:"trusted-proxies" env:"DAESA_TRUSTED_PROXIES" help:"Addresses or CIDR blocks whose X-Forwarded-For is believed."`
	RateLimit        int      `name:"webhook-rate-limit" env:"DAESA_WEBHOOK_RATE_LIMIT" default:"300" help:"Webhook deliveries a minute and source."`
	GatewayRateLimit int      `name:"gateway-rate-limit" env:"DAESA_GATEWAY_RATE_LIMIT" help:"Webhook deliveries a minute and address of the gateway's; as for others when left out."`
	GatewayAddresses []string `name:"gateway-addresses" env:"DAESA_GATEWAY_ADDRESSES" help:"Addresses or CIDR blocks that the gateway sends from; they have a rate limit of their own."`
	ConfirmRateLimit int      `name:"confirm-rate-limit" env:"DAESA_CONFIRM_RATE_LIMIT" default:"120" help:"Approvals a minute and source."`
}

func (s admissionSettings) apply(cfg *Config) {
	cfg.RecordOnly = s.Admission == "record"
	cfg.TrustedProxies = s.TrustedProxies
	cfg.RateLimit, cfg.GatewayRateLimit, cfg.ConfirmRateLimit = s.RateLimit, s.GatewayRateLimit, s.ConfirmRateLimit
	cfg.GatewayAddresses = s.GatewayAddresses
}
