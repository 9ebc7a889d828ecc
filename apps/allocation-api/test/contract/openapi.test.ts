import {
  isRecordsPath,
  MAX_RECORDS_BODY_BYTES,
  type Operation,
  operationList,
  operations,
  toErrorStatus,
} from '@pool/contract'
import { allocationApiDocument } from '@pool/contract/openapi/documents'
import { beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { createRoutes } from '../../src/http/app.ts'
import type { Listener } from '../../src/http/request.ts'
import { unusedDependencies } from '../support/fake-services-app.ts'
import { createContractCall, startTestService, unknownToken } from '../support/service.ts'
import { unknownRecordsToken } from '../support/tenant-records.ts'
import { findOperation } from '../support/validate.ts'

const { api, call, database } = await startTestService({
  PDM_OPERATOR_TOKENS: 'token-of-these-tests',
  PDM_TEST_SETTINGS: JSON.stringify({ validationAttempts: 10_000 }),
})

const operation = z.looseObject({
  operationId: z.string(),
  summary: z.string().min(1),
  tags: z.array(z.string()).min(1),
  parameters: z
    .array(
      z.looseObject({ name: z.string(), in: z.enum(['path', 'query', 'header']), required: z.boolean().optional() }),
    )
    .optional(),
  requestBody: z.looseObject({ required: z.boolean(), content: z.record(z.string(), z.unknown()) }).optional(),
  responses: z.record(z.string(), z.looseObject({ description: z.string().min(1) })),
})
const documentShape = z.looseObject({
  openapi: z.string(),
  info: z.looseObject({ title: z.string(), version: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }),
})

let text: string
let document: z.infer<typeof documentShape>
beforeAll(async () => {
  const answer = await call('GET', '/openapi.json')
  text = answer.text
  document = documentShape.parse(answer.body)
})

const listOperations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ method: method.toUpperCase(), path, ...one })),
  )

/** Hono lists a route once per handler. */
const listRoutes = (listener: Listener, exposeLists: boolean) =>
  [
    ...new Set(
      createRoutes(unusedDependencies, { listener, tokens: null, exposeLists })
        .routes.filter(({ method }) => method !== 'ALL')
        .map(({ method, path }) => `${method} ${path.replace(/:([a-z]+)/g, '{$1}')}`),
    ),
  ].sort()

test('it is OpenAPI 3.1 and carries version 1.0.0', () => {
  expect(document.openapi).toMatch(/^3\.1\.\d+$/)
  expect(document.info.version).toBe('1.0.0')
})

test('the document describes exactly the mounted routes', () => {
  expect(listRoutes('operator', true)).toEqual(
    listOperations()
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
  )
})

test('without lists only the lists are missing; the in-cluster listener has no operator routes', () => {
  const missing = (listener: Listener, exposeLists: boolean) => {
    const mounted = new Set(listRoutes(listener, exposeLists))
    return listRoutes('operator', true).filter(route => !mounted.has(route))
  }
  const of = (...listeners: readonly (string | undefined)[]) =>
    operationList
      .filter(({ listener }) => listeners.includes(listener))
      .map(({ method, path }) => `${method.toUpperCase()} ${path}`)
      .sort()
  expect(of('list').length).toBeGreaterThan(2)
  expect(missing('operator', false)).toEqual(of('list'))
  expect(missing('in-cluster', true)).toEqual(of('operator'))
  expect(missing('in-cluster', false)).toEqual(of('list', 'operator'))
})

test('no operation for operators alone is in-cluster', () => {
  const ofOperators = operationList.filter(({ tag }) => tag === 'Operator' || tag === 'Console')
  expect(ofOperators.filter(({ listener }) => listener !== 'operator').map(({ id }) => id)).toEqual([])
})

test('the served document is generated from the contract', () => {
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(allocationApiDocument())))
})

test('operation ids are unique', () => {
  const ids = listOperations().map(({ operationId }) => operationId)
  expect(ids).toEqual([...new Set(ids)])
  expect([...ids].sort()).toEqual(Object.keys(operations).sort())
})

test('each path parameter is required, and no other path parameter is described', () => {
  for (const { path, operationId, parameters = [] } of listOperations()) {
    const inPath = parameters.filter(one => one.in === 'path')
    expect(inPath.map(({ name }) => name).sort(), operationId).toEqual(
      [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '').sort(),
    )
    expect(
      inPath.every(({ required }) => required === true),
      operationId,
    ).toBe(true)
  }
})

test('every reference resolves to a schema', () => {
  const names = [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name ?? '')
  expect(names.length).toBeGreaterThan(10)
  expect(names.filter(name => !(name in document.components.schemas))).toEqual([])
})

test('the token is a field of the response to reserve only', () => {
  const holders = Object.entries(document.components.schemas)
    .filter(([, schema]) => JSON.stringify(schema).includes('reservationToken'))
    .map(([name]) => name.replace(/(Input|Output)$/, ''))
  const answers = new Set(holders.filter(name => !name.endsWith('Request')))
  expect([...answers]).toEqual(['ReserveResponse'])
})

test('the keys of the object storage are fields of requests only', () => {
  const holders = Object.entries(document.components.schemas)
    .filter(([, schema]) => /objectStorage\w*Key/.test(JSON.stringify(schema)))
    .map(([name]) => name)
  expect(holders).toEqual(['DeploymentRequest', 'ApplyRequest', 'PlanRequest', 'DestroyRequest'])
})

describe('every operation, on the operator listener', () => {
  /** With the type of any operation. */
  const all: readonly Operation[] = operationList
  const call = createContractCall(api.operatorUrl ?? '')
  const send = (method: string, path: string, body?: unknown, headers = {}) => {
    const token = isRecordsPath(path) ? unknownRecordsToken : 'token-of-these-tests'
    return call(method.toUpperCase(), path, body, { Authorization: `Bearer ${token}`, ...headers })
  }
  const toPath = (pattern: string): string =>
    pattern
      .replace('{domain}', 'pool.test')
      .replace('{id}', '0a000000-0000-4000-8000-00000000000b')
      .replace(/\{\w+\}/, 'acme')

  test.each(all.filter(({ isPublic }) => !isPublic))('$id needs a token', async ({ method, path }) => {
    for (const headers of [{}, { Authorization: 'Bearer wrong' }]) {
      expect((await call(method.toUpperCase(), toPath(path), undefined, headers)).status).toBe(401)
    }
  })

  test.each([...new Set(all.map(({ path }) => path))])('405 lists the methods of %s', async pattern => {
    const path = toPath(pattern)
    const methods = ['DELETE', 'GET', 'OPTIONS', 'PATCH', 'POST', 'PUT']
    const known = methods.filter(method => findOperation(method, path))
    const allowed = known.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
    for (const method of methods.filter(one => !known.includes(one))) {
      const { status, headers } = await send(method, path)
      expect([method, status, headers.get('allow')]).toEqual([method, 405, allowed])
    }
  })

  const withJson = all.filter(({ body }) => body && body.mediaType === undefined)

  test.each(withJson)(
    '$id: a body that is not JSON is 400, and one above 64 KiB, or 1 MiB of records, is 413',
    async ({ method, path, body }) => {
      const invalid = { status: 400, body: { error: 'invalid-json' } }
      expect(await send(method, toPath(path), '{')).toMatchObject(invalid)
      if (body?.required) expect(await send(method, toPath(path))).toMatchObject(invalid)
      const tooLarge = { status: 413, body: { error: 'body-too-large' } }
      const maxBytes = isRecordsPath(path) ? MAX_RECORDS_BODY_BYTES : 65_536
      expect(await send(method, toPath(path), ' '.repeat(maxBytes + 1))).toMatchObject(tooLarge)
    },
  )

  test.each(all.filter(({ headers }) => headers?.shape['Idempotency-Key']))(
    '$id: an invalid Idempotency-Key is 400',
    async ({ method, path }) => {
      for (const key of ['', 'a b', 'k'.repeat(256), 'caf\xe9']) {
        const answer = await send(method, toPath(path), { domain: 'acme.example' }, { 'Idempotency-Key': key })
        expect([key, answer.body.error]).toEqual([key, 'invalid-idempotency-key'])
      }
    },
  )

  const badQueries: Readonly<Record<string, readonly [values: readonly string[], code: string]>> = {
    limit: [['0', 'x'], 'invalid-limit'],
    cursor: [['!'], 'invalid-cursor'],
    state: [['free'], 'invalid-state'],
    dryRun: [['', 'yes', 'TRUE', '1'], 'invalid-format'],
  }
  // The witness validates the cursors of its lists.
  const withQuery = all
    .filter(({ id }) => id !== 'listWitnessLeases')
    .flatMap(({ id, method, path, query }) =>
      Object.keys(query?.shape ?? {}).flatMap(parameter => {
        const [values, code] = badQueries[parameter] ?? [[], '']
        return values.map(value => [id, method, `${toPath(path)}?${parameter}=${value}`, code] as const)
      }),
    )

  test.each(withQuery)('%s: %s %s is 422 %s', async (_, method, path, error) => {
    expect(await send(method, path)).toMatchObject({ status: 422, body: { error } })
  })

  const misspell = (name: string): readonly string[] =>
    [name.toUpperCase(), name.replace(/[A-Z]|$/, '_$&'), `${name}s`, ` ${name}`].filter(other => other !== name)

  test.each(all.filter(({ ignoresUnknownQuery }) => !ignoresUnknownQuery))(
    '$id: an unknown or misspelt parameter is 422, is named, and changes nothing',
    async ({ method, path, query }) => {
      const known = Object.keys(query?.shape ?? {})
      const before = await database.sql`select a.*, (select max(id) from allocation_history) from pool_allocations a`
      for (const name of [...known.flatMap(misspell), 'dry-run', 'nope', '']) {
        const body = { subdomain: 'acme', createdBy: 'test', reservationToken: unknownToken }
        const search = new URLSearchParams([...known.map(one => [one, '1'] as [string, string]), [name, 'true']])
        const answer = await send(method, `${toPath(path)}?${search}`, method === 'get' ? undefined : body)
        const status = toErrorStatus('unknown-parameter', path)
        expect([name, answer.status, answer.body.error]).toEqual([name, status, 'unknown-parameter'])
        expect(answer.body.detail).toContain(`The parameter ${JSON.stringify(name)} is unknown`)
      }
      expect(await database.sql`select a.*, (select max(id) from allocation_history) from pool_allocations a`).toEqual(
        before,
      )
    },
  )

  test.each(all.filter(({ ignoresUnknownQuery }) => ignoresUnknownQuery))(
    '$id ignores unknown parameters',
    async ({ method, path }) => {
      const answers = [await send(method, toPath(path)), await send(method, `${toPath(path)}?nope=1`)]
      expect(answers[1]?.status).toBe(answers[0]?.status)
    },
  )

  test.each(all.filter(({ path }) => path.includes('{subdomain}')))(
    '$id: a label that is not valid is 422',
    async ({ method, path }) => {
      const answer = await send(method, toPath(path.replace('{subdomain}', '-')))
      expect(answer).toMatchObject({ status: 422, body: { error: 'invalid-format' } })
    },
  )

  test.each(all.filter(({ path }) => path.includes('{domain}') && !path.endsWith('/check')))(
    '$id: a pool that is not managed is 422',
    async ({ id, method, path }) => {
      const body = {
        subdomain: 'acme',
        reservationToken: unknownToken,
        loadBalancerIP: '10.0.0.1',
        sovereignFQDN: 'acme.x.test',
        trust: 'zone',
        scope: 'acme',
        id: unknownToken,
      }
      const query = id === 'listTokens' ? '?sub=acme' : ''
      const answer = await send(
        method,
        toPath(path.replace('{domain}', 'x.test')) + query,
        method === 'get' ? undefined : body,
      )
      expect([id, answer.status, answer.body.error]).toEqual([id, 422, 'unsupported-pool'])
    },
  )
})

describe('the reference page works without the internet', () => {
  const linked = (html: string) => [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address ?? '')

  test('it links to this service only', async () => {
    const { status, headers, text: html } = await call('GET', '/docs')
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8'])
    expect(linked(html).length).toBeGreaterThan(1)
    for (const address of linked(html)) expect(address).toMatch(/^(?:data:,|\/docs(?:\/[\w.-]+)?)$/)
    expect(html).not.toMatch(/https?:|"\/\//)
  })

  test('everything it links to is served with its content type', async () => {
    const types: Record<string, RegExp> = { css: /^text\/css/, js: /^text\/javascript/ }
    const pages = [await call('GET', '/docs'), await call('GET', '/docs/lease-witness')].map(({ text }) => text)
    for (const address of new Set(pages.flatMap(linked).filter(found => found !== 'data:,'))) {
      const { status, headers, text: content } = await call('GET', address)
      expect(status, address).toBe(200)
      expect(headers.get('content-type')).toMatch(types[address.split('.').at(-1) ?? ''] ?? /^text\/html/)
      expect(content.length).toBeGreaterThan(50)
    }
  })

  test('its script reads the document of this service and uses no external validator', async () => {
    const { text: script } = await call('GET', '/docs/start.js')
    expect(script).toContain('spec: reference')
    expect(script).toContain('validatorUrl: null')
    expect(script).not.toMatch(/https?:/)
  })

  test('the content security policy allows no other host', async () => {
    const policy = (await call('GET', '/docs')).headers.get('content-security-policy') ?? ''
    expect(policy).toMatch(/default-src 'self'/)
    expect(policy).not.toMatch(/https?:|\*|'unsafe-eval'|script-src/)
  })

  test('a browser finds it from the root', async () => {
    const response = await fetch(api.url, { headers: { Accept: 'text/html' }, redirect: 'manual' })
    expect([response.status, response.headers.get('location')]).toEqual([302, '/docs'])
  })

  test.each([
    ['in-cluster', {}, []],
    ['operator', { Authorization: 'Bearer token-of-these-tests' }, [{ operator: [] }]],
  ])(
    'the page of the %s listener has its operations, and a padlock where a token is needed',
    async (name, headers, security) => {
      const at = name === 'operator' ? api.operatorUrl : api.url
      const script = await (await fetch(`${at}/docs/allocation-api.js`, { headers })).text()
      const reference = JSON.parse(script.slice(script.indexOf('{')))
      const ids = Object.values<object>(reference.paths).flatMap(methods =>
        Object.values(methods).map(({ operationId }) => operationId),
      )
      const shown = operationList.filter(({ listener }) => listener !== 'operator' || name === 'operator')
      expect(ids.sort()).toEqual(shown.map(({ id }) => id).sort())
      expect([reference.security, 'securitySchemes' in reference.components]).toEqual([security, security.length > 0])
    },
  )

  test.each(['package.json', 'index.html', 'swagger-initializer.js', '..%2fpackage.json', '%2e%2e/package.json'])(
    'no other file is served: %s',
    async asset => {
      expect((await fetch(`${api.url}/docs/${asset}`)).status).toBe(404)
    },
  )
})
