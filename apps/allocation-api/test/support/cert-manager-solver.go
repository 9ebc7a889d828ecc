// Presents a challenge with the solver acmeDNS of cert-manager, with an account file as its Secret has it.
package main

import (
	"context"
	"log"
	"os"

	"github.com/cert-manager/cert-manager/pkg/issuer/acme/dns/acmedns"
)

func main() {
	host, accounts, domain, value := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	text, err := os.ReadFile(accounts)
	if err != nil {
		log.Fatal(err)
	}
	provider, err := acmedns.NewDNSProviderHostBytes(host, text, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := provider.Present(context.Background(), domain, "_acme-challenge."+domain+".", value); err != nil {
		log.Fatal(err)
	}
}
