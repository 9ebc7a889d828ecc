import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** The schema of PowerDNS's SQLite backend, as its package installs it. */
export const pdnsSchema = [
  '/usr/share/pdns-backend-sqlite3/schema',
  '/usr/share/doc/pdns-backend-sqlite3',
  '/usr/share/doc/pdns',
]
  .map(folder => join(folder, 'schema.sqlite3.sql'))
  .find(existsSync)

const toFile = (folder: string): string => join(folder, 'zones.sqlite3')

/** Inserts A records into the database of a server that may be running. */
export const fillPdnsZone = (
  folder: string,
  zone: string,
  records: Iterable<readonly [name: string, address: string]>,
): void => {
  const database = new DatabaseSync(toFile(folder))
  database.exec('pragma busy_timeout = 5000; begin immediate')
  const insert = database.prepare(
    `insert into records (domain_id, name, type, content, ttl, prio, disabled, auth)
     select id, ?, 'A', ?, 300, 0, 0, 1 from domains where name = ?`,
  )
  for (const [name, address] of records) insert.run(name, address, zone)
  database.exec('commit')
  database.close()
}

/** An empty database and a configuration without caches, so that what was written is what is answered. */
export const writePdnsFiles = async (folder: string, settings: readonly string[]): Promise<void> => {
  const file = toFile(folder)
  const database = new DatabaseSync(file)
  database.exec(readFileSync(pdnsSchema ?? '', 'utf8'))
  database.close()
  const lines = [
    'launch=gsqlite3',
    `gsqlite3-database=${file}`,
    'gsqlite3-pragma-synchronous=0',
    `socket-dir=${folder}`,
    'zone-cache-refresh-interval=0',
    'cache-ttl=0',
    'query-cache-ttl=0',
    'negquery-cache-ttl=0',
    'zone-metadata-cache-ttl=0',
    'security-poll-suffix=',
    'loglevel=3',
    'daemon=no',
    'guardian=no',
    ...settings,
  ]
  await writeFile(join(folder, 'pdns.conf'), `${lines.join('\n')}\n`, { mode: 0o600 })
}
