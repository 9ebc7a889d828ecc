import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What makes a statement need a feature, by the first words of its row in docs/operate/scale.md. */
const features: Readonly<Record<string, RegExp>> = {
  'data-modifying CTE': /\bas \(\s*(?:update|insert into|delete from) /,
  '`for update`': /skip locked/,
  '`on conflict do update`': /on conflict .*do update/,
  '`lateral`': /\bjoin lateral /,
  'advisory locks': /pg_(?:try_)?advisory_/,
  '`LISTEN` and `NOTIFY`': /pg_notify\(|\.listen\(/,
  sequences: /nextval\('/,
  'transaction ids': /pg_xact_status\(|::xid8/,
  '`clock_timestamp()`': /clock_timestamp\(\)/,
  '`pg_postmaster_start_time()`': /pg_postmaster_start_time\(\)/,
  'PL/pgSQL functions and triggers': /language plpgsql/,
  '`jsonb`': /jsonb_to_recordset\(/,
  '`inet`': /\binet\b/,
  'collation `C`': /collate "C"/,
  'partial indexes': /create (?:unique )?index [^;]*\bwhere /,
  '`statement_timeout`': /statement_timeout/,
  '`synchronous_commit`': /synchronous_commit/,
  'isolation `read committed`': /read committed/,
}

/** What the service does not use, although such services often do. A use of it needs a row. */
const unused: Readonly<Record<string, RegExp>> = {
  extensions: /create extension/i,
  'exclusion constraints': /exclude using/i,
  partitions: /partition by (?:range|list|hash)/i,
  'prepared transactions': /prepare transaction|commit prepared/i,
  'materialized views': /materialized view/i,
  cursors: /declare \w+ cursor/i,
  'large objects': /\blo_(?:create|import|open)\(/i,
  'row-level security': /row level security/i,
}

const sources = ['apps/allocation-api/src', 'apps/lease-witness/src', 'packages/runtime/src']
  .flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(path => join(root, folder, path)),
  )
  .filter(path => /(?<!\.test)\.(?:ts|sql)$/.test(path))
  .map(path => readFileSync(path, 'utf8'))

const page = readFileSync(join(root, 'docs/operate/scale.md'), 'utf8')
const rows = [...page.slice(page.indexOf('| feature |')).matchAll(/^\| (?!feature|-)(.+?) \|/gm)].map(
  ([, cell = '']) => cell,
)

test('the page lists what our statements need of a database', () => {
  const names = Object.keys(features)
  expect(rows.map(row => names.find(name => row.startsWith(name)) ?? row)).toEqual(names)
})

test.each(Object.entries(features))('a statement needs: %s', (_, pattern) => {
  expect(sources.some(source => pattern.test(source))).toBe(true)
})

test.each(Object.entries(unused))('no statement needs: %s', (_, pattern) => {
  expect(sources.filter(source => pattern.test(source))).toEqual([])
})
