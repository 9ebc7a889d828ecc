import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { promisify } from 'node:util'
import { listenOnLoopback } from '@pool/dev/ports'
import { expect, onTestFinished, test } from 'vitest'
import { toProxyEnv } from '../../src/lib/proxy.ts'

test('a proxy without scheme, in lower case, and no other variable', () => {
  expect(toProxyEnv({ https_proxy: 'proxy.test:3128', NO_PROXY: 'a', HTTP_PROXY: 'http://plain.test' })).toEqual({
    HTTPS_PROXY: 'http://proxy.test:3128',
    NO_PROXY: 'a',
  })
  expect(toProxyEnv({ NO_PROXY: 'a', HTTP_PROXY: 'http://plain.test' })).toEqual({})
})

/** Sends one request by each client of the service. */
const script = `
  import { useProxy } from './src/lib/proxy.ts'
  import { createHttpsGet } from './src/credentials/https-client.ts'
  import { requestJson, requestStream } from './src/dns/http-client.ts'
  import { startTracing } from './src/observability/tracing.ts'
  useProxy(process.env)
  const signal = AbortSignal.timeout(10_000)
  await createHttpsGet({ deadlineMs: 10_000, extraCa: null })(new URL('https://storage.test/'), {})
  await requestJson({ url: new URL('https://dns.test/') }, signal)
  await requestStream({ url: new URL('https://stream.test/') }, signal)
  for (const name of ['get', 'json', 'stream']) {
    const url = new URL('https://' + name + '.direct.test/')
    await createHttpsGet({ deadlineMs: 10_000, extraCa: null })(url, {})
    await requestJson({ url }, signal)
    await requestStream({ url }, signal)
  }
  await requestJson({ url: new URL('http://plain.test/') }, signal)
  const tracing = startTracing({ serviceName: 'test', sampler: 'always_on', ratio: 1 }, '1')
  await tracing.tracer.run('one', {}, async () => {})
  await tracing.stop()
`

test('the requests over HTTPS of every client go to HTTPS_PROXY, except those of NO_PROXY', async () => {
  const targets: string[] = []
  const proxy = createServer((request, response) => response.end(targets.push(`plain ${request.url}`)))
  proxy.on('connect', ({ url = '' }, socket) => {
    targets.push(url)
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
  })
  const port = await listenOnLoopback(proxy)
  onTestFinished(() => void proxy.close())
  await promisify(execFile)(process.execPath, ['--input-type=module-typescript', '-e', script], {
    cwd: new URL('../../', import.meta.url),
    env: {
      PATH: process.env.PATH,
      HTTPS_PROXY: `http://127.0.0.1:${port}`,
      HTTP_PROXY: `http://127.0.0.1:${port}`,
      NO_PROXY: '.direct.test',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://traces.test',
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    },
  })
  const expected = ['dns.test:443', 'storage.test:443', 'stream.test:443', 'traces.test:443']
  expect([...new Set(targets)].toSorted()).toEqual(expected)
})
