import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { addresses, found, keyNames, lacking, run, type ServerKind, zoneText } from './server.ts'

const schema = ['/usr/share/pdns-backend-sqlite3/schema', '/usr/share/doc/pdns-backend-sqlite3', '/usr/share/doc/pdns']
  .map(folder => join(folder, 'schema.sqlite3.sql'))
  .find(existsSync)
const programs = ['pdns_server', 'pdnsutil', ...(schema ? [] : ['schema.sqlite3.sql'])]

export const powerdns: ServerKind = {
  name: 'PowerDNS',
  lacks: lacking('PowerDNS', programs, 'pdns-server pdns-backend-sqlite3'),
  // Only by a script of one's own (its setting `lua-dnsupdate-policy-script`).
  hasLimitedKeys: false,
  hasTsigErrors: false,
  takesUnknownTypes: false,
  mostRecordSets: 200,
  async prepare({ folder, port, zone, zoneFile, secret }) {
    const file = join(folder, 'zones.sqlite3')
    const database = new DatabaseSync(file)
    database.exec(readFileSync(schema ?? '', 'utf8'))
    database.close()
    await writeFile(zoneFile, zoneText(zone))
    await writeFile(
      join(folder, 'pdns.conf'),
      `launch=gsqlite3
gsqlite3-database=${file}
gsqlite3-pragma-synchronous=0
gsqlite3-dnssec=yes
socket-dir=${folder}
local-address=${addresses.join(',')}
local-port=${port}
dnsupdate=yes
allow-dnsupdate-from=127.0.0.0/8,::1
allow-axfr-ips=
zone-cache-refresh-interval=0
cache-ttl=0
query-cache-ttl=0
negquery-cache-ttl=0
zone-metadata-cache-ttl=0
security-poll-suffix=
loglevel=4
daemon=no
guardian=no
`,
      { mode: 0o600 },
    )
    const util = (...words: string[]) => run(found('pdnsutil') ?? '', [`--config-dir=${folder}`, ...words])
    await util('load-zone', zone, zoneFile)
    for (const name of keyNames) await util('import-tsig-key', name, 'hmac-sha256', secret)
    await util('set-meta', zone, 'TSIG-ALLOW-AXFR', ...keyNames)
    await util('set-meta', zone, 'TSIG-ALLOW-DNSUPDATE', 'full.key.test')
    await util('set-meta', zone, 'SOA-EDIT-DNSUPDATE', 'INCREASE')
    return [found('pdns_server') ?? '', `--config-dir=${folder}`]
  },
}
