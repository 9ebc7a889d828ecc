import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const alerts = Array.from(
  read('infra/chart/files/alerts.yaml').matchAll(
    /- alert: (\w+)\n[\s\S]*?severity: (\w+)[\s\S]*?runbook_url: \S*?(docs\/runbooks\/\S+\.md)/g,
  ),
  ([, name = '', severity = '', page = '']) => ({ name, severity, page }),
)
const index = read('docs/runbooks/README.md')

test('each alert has one runbook, and each runbook its alert', () => {
  const pages = readdirSync(fileURLToPath(new URL('../../docs/runbooks', import.meta.url)))
    .filter(file => file !== 'README.md')
    .map(file => `docs/runbooks/${file}`)
  expect(read('infra/chart/files/alerts.yaml').match(/- alert: /g)).toHaveLength(alerts.length)
  expect(alerts.map(({ page }) => page).toSorted()).toEqual(pages.toSorted())
})

test.each(alerts)('$page says what $name means and what to do', ({ name, severity, page }) => {
  const text = read(page)
  expect(text.startsWith(`# ${name}\n`)).toBe(true)
  expect(text).toContain(`Severity: ${severity}.`)
  expect(text.match(/(?<=^## ).*/gm)).toEqual(['Impact', 'Diagnosis', 'Fix', 'Escalate'])
  expect(index).toContain(`| [${name}](${page.replace('docs/runbooks/', '')}) | ${severity} |`)
})
