export interface QuickstartValues {
  readonly apiPort: number
  readonly operatorPort: number
  readonly dnsPort: number
  readonly postgresPort: number
  readonly pool: string
  readonly dataDir: string
  readonly apiLog: string
  readonly postgresLog: string
  readonly postgresPassword: string
  readonly witnessPort: number
  readonly witnessLog: string
  /** Absent if BEARER_TOKENS_CSV is set. */
  readonly witnessTokenFile?: string
  /** Absent if PDM_OPERATOR_TOKENS is set. */
  readonly operatorTokenFile?: string
  /** Starts one session of the console. Absent as above. */
  readonly signInCode?: string
}

/** A well-formed Ed25519 key (RFC 8709 section 4) without a private key. */
const sshPublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f tour'

/** The text that `start` prints when all services are ready. Nothing in it is a lasting credential. Its commands need a POSIX shell, curl, sed and dig. */
export function renderQuickstart(at: QuickstartValues): string {
  const pool = `http://127.0.0.1:${at.apiPort}/api/v1/pool/${at.pool}`
  const name = `acme.${at.pool}`
  const token = at.operatorTokenFile ? `token in ${at.operatorTokenFile}` : 'a token from PDM_OPERATOR_TOKENS'
  // A browser does not send the fragment of a URL to any server.
  const signIn = at.signInCode ? `#code=${at.signInCode}   (signs in once, within 5 minutes)` : ''
  const lease = `http://127.0.0.1:${at.witnessPort}/lease/$SLOT`
  const witnessToken = at.witnessTokenFile ? `token in ${at.witnessTokenFile}` : 'a token from BEARER_TOKENS_CSV'
  const bearer = at.witnessTokenFile ? `$(cat '${at.witnessTokenFile}')` : '<a token from BEARER_TOKENS_CSV>'
  const commit = {
    subdomain: 'acme',
    reservationToken: '$TOKEN',
    loadBalancerIP: '203.0.113.10',
    sovereignFQDN: name,
  }
  const deployments = `http://127.0.0.1:${at.apiPort}/api/v1/deployments`
  const deployment = {
    orgName: 'Globex',
    orgEmail: 'ops@globex.example',
    sovereignDomainMode: 'pool',
    sovereignPoolDomain: at.pool,
    sovereignSubdomain: 'globex',
    providers: ['local'],
    region: 'local',
    sshPublicKey,
  }
  return `
Everything is running.

  API        http://127.0.0.1:${at.apiPort}
  operator   http://127.0.0.1:${at.operatorPort}   (${token})
  console    http://127.0.0.1:${at.operatorPort}/console${signIn}
  witness    http://127.0.0.1:${at.witnessPort}   (${witnessToken})
  reference  http://127.0.0.1:${at.apiPort}/docs
  DNS        127.0.0.1:${at.dnsPort}, UDP and TCP
  Postgres   127.0.0.1:${at.postgresPort}, database pdm, user postgres   (password in ${at.postgresPassword})
  logs       ${at.apiLog}
             ${at.witnessLog}
             ${at.postgresLog}
  data       ${at.dataDir}

Paste these commands into another terminal, one after the other:

[ -z "\${ZSH_VERSION-}" ] || setopt interactivecomments

# 1. reserve a name and save the token; it is returned only once
ANSWER=$(curl -sS ${pool}/reserve -d '{"subdomain":"acme"}'); echo "$ANSWER"
TOKEN=$(echo "$ANSWER" | sed 's/.*"reservationToken": *"\\([^"]*\\)".*/\\1/')

# 2. commit it; its DNS records are published
curl -sS -w '\\n' ${pool}/commit -d "${JSON.stringify(commit).replaceAll('"', '\\"')}"

# 3. query the DNS server
dig @127.0.0.1 -p ${at.dnsPort} +short ${name}

# 4. release it; its records are removed and the name is free again
curl -sS -w '\\n' -X DELETE ${pool}/release -d "{\\"subdomain\\":\\"acme\\",\\"reservationToken\\":\\"$TOKEN\\"}"

# 5. region-a acquires a lease; generation 0 means that the slot has never been used
AUTH="Authorization: Bearer ${bearer}"; SLOT="tour-$(date +%s)"
curl -sS -w '\\n' -X PUT ${lease} -H "$AUTH" -H 'If-Match: 0' -d '{"holder":"region-a","ttlSeconds":30}'

# 6. region-b loses the race and gets the current lease back (412)
curl -sS -w '\\n' -X PUT ${lease} -H "$AUTH" -H 'If-Match: 0' -d '{"holder":"region-b"}'

# 7. region-b waits until no client holds the lease; region-a releases it after one second, and the wait ends
(sleep 1; curl -sS -X DELETE ${lease} -H "$AUTH" -H 'If-Match: 1' -H 'X-Holder: region-a') &
curl -sS -w '\\n' "${lease}?until=vacant" -H "$AUTH" -H 'Prefer: wait=20'

# 8. create a deployment: reserve a name and let Terraform provision it (the local module only allocates an address).
#    Without terraform or tofu on the PATH of \`start\`, it returns 503 with install instructions, and 9 to 12 find nothing
ANSWER=$(curl -sS ${deployments} -d '${JSON.stringify(deployment)}'); echo "$ANSWER"
ID=$(echo "$ANSWER" | sed -n 's/.*"id": *"\\([^"]*\\)".*/\\1/p')
OWNER="X-Deployment-Token: $(echo "$ANSWER" | sed -n 's/.*"deploymentToken": *"\\([^"]*\\)".*/\\1/p')"

# 9. stream its log until "event: done"
curl -sSN -w '\\n' ${deployments}/\${ID:-none}/logs

# 10. its name is active
dig @127.0.0.1 -p ${at.dnsPort} +short globex.${at.pool}

# 11. destroy what it made; wait for the end of the log
curl -sS -w '\\n' -X POST ${deployments}/\${ID:-none}/destroy -H "$OWNER"
curl -sSN -w '\\n' ${deployments}/\${ID:-none}/logs | tail -n 4

# 12. delete it (204)
curl -sS -o /dev/null -w '%{http_code}\\n' -X DELETE ${deployments}/\${ID:-none} -H "$OWNER"

Ctrl-C shuts everything down; the data persists across restarts.
`
}
