import { join } from 'node:path'
import { missingPrograms } from '@pool/test-kit/kubernetes/programs.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { expect, test } from 'vitest'
import { RELEASE, readFile, render, root } from './support/chart.ts'
import { renderHardenedEnv } from './support/pod.ts'

const page = readFile(join(root, 'docs/operate/hardened.md'))
const [block = ''] = /(?<=```text\n)[^`]*/.exec(page) ?? []
/** The chart has network policies and a container of Terraform instead. */
const ofOneHost = ['PDM_LISTEN_ADDRESS', 'PDM_TERRAFORM_ISOLATION', 'WITNESS_LISTEN_ADDRESS']

test.skipIf(shouldSkip(missingPrograms))(
  'a hardened installation has the same settings in the chart and on a single host, each with what it breaks',
  async () => {
    const rendered = { ...(await renderHardenedEnv('api')), ...(await renderHardenedEnv('witness')) }
    const lines = Object.fromEntries(
      block
        .trim()
        .split('\n')
        .map(line => line.split('=')),
    )
    const names = [...Object.keys(rendered), ...ofOneHost].toSorted()
    expect(Object.keys(lines).toSorted()).toEqual(names)
    for (const [name, value] of Object.entries(rendered)) {
      if (name !== 'PDM_ALLOWED_HOSTS') expect([name, lines[name]]).toEqual([name, value])
    }
    // A port-forward, and every form of a Service's name.
    const own = ['127.0.0.1', 'localhost']
    const services = (await render('hardened')).filter(
      ({ kind, metadata: { name } }) => kind === 'Service' && name.includes('-api'),
    )
    expect(services.length).toBeGreaterThan(1)
    const forms = services.flatMap(({ metadata: { name } }) =>
      ['', '.svc', '.svc.cluster.local'].map(end => `${name}.${RELEASE}${end}`).concat(name),
    )
    expect(rendered.PDM_ALLOWED_HOSTS?.split(',')).toEqual(expect.arrayContaining([...own, ...forms]))
    expect(lines.PDM_ALLOWED_HOSTS?.split(',')).toEqual(expect.arrayContaining(own))
    const rows = Array.from(page.matchAll(/^\| (`[A-Z_` ]+) \| \S/gm), ([, first = '']) => first.match(/\w+/g) ?? [])
    expect(rows.flat().toSorted()).toEqual(names)
  },
)
