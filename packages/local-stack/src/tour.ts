export interface Addresses {
  readonly apiPort: number
  readonly operatorPort: number
  readonly dnsPort: number
  readonly postgresPort: number
  readonly pool: string
  readonly dataDir: string
  readonly apiLog: string
  readonly postgresLog: string
  readonly postgresPassword: string
  /** Absent: the tokens are those that PDM_OPERATOR_TOKENS named. */
  readonly operatorToken?: string
}

/** What a start says once everything listens. The commands want a POSIX shell, curl, sed and dig, and no more. */
export function tour(at: Addresses): string {
  const pool = `http://127.0.0.1:${at.apiPort}/api/v1/pool/${at.pool}`
  const name = `acme.${at.pool}`
  const token = at.operatorToken ? `token in ${at.operatorToken}` : 'a token of your PDM_OPERATOR_TOKENS'
  const commit = {
    subdomain: 'acme',
    reservationToken: '$TOKEN',
    loadBalancerIP: '203.0.113.10',
    sovereignFQDN: name,
  }
  return `
The allocation service is running.

  API        http://127.0.0.1:${at.apiPort}
  operator   http://127.0.0.1:${at.operatorPort}   (${token})
  DNS        127.0.0.1:${at.dnsPort}, UDP and TCP
  Postgres   127.0.0.1:${at.postgresPort}, database pdm, user postgres   (password in ${at.postgresPassword})
  logs       ${at.apiLog}
             ${at.postgresLog}
  data       ${at.dataDir}

Paste these into another terminal, one after the other:

# 1. reserve a name, and keep the token that only this answer holds
ANSWER=$(curl -sS ${pool}/reserve -d '{"subdomain":"acme"}'); echo "$ANSWER"
TOKEN=$(echo "$ANSWER" | sed 's/.*"reservationToken": *"\\([^"]*\\)".*/\\1/')

# 2. commit it: its records are published
curl -sS -w '\\n' ${pool}/commit -d "${JSON.stringify(commit).replaceAll('"', '\\"')}"

# 3. ask the DNS server
dig @127.0.0.1 -p ${at.dnsPort} +short ${name}

# 4. release it: the name is free again, its records are gone
curl -sS -w '\\n' -X DELETE ${pool}/release -d '{"subdomain":"acme"}'

Ctrl-C stops everything; the data stays for the next start.
`
}
