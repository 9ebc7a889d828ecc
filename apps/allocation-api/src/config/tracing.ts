import type { EnvReader } from '@pool/runtime/service/env'

export const TRACE_SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
export type TraceSampler = (typeof TRACE_SAMPLERS)[number]

/** Variables of OpenTelemetry. The exporter reads the other ones itself, such as the endpoints and timeouts. */
export interface TracingSettings {
  readonly serviceName: string
  readonly sampler: TraceSampler
  /** From 0 to 1; used by the samplers with a ratio. */
  readonly ratio: number
  /** `name=value` pairs in percent-encoding, separated by commas; the last one of a name counts. Secret. */
  readonly headers: string
}

const readRatio = (env: EnvReader): number => {
  const text = env.text('OTEL_TRACES_SAMPLER_ARG') ?? '1'
  const ratio = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (ratio >= 0 && ratio <= 1) return ratio
  env.addIssue('OTEL_TRACES_SAMPLER_ARG', 'must be a fraction from 0 to 1, such as 0.1')
  return 1
}

/** Null: tracing is off, which is the default without an endpoint. */
export const readTracing = (env: EnvReader): TracingSettings | null => {
  const endpoints = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'].filter(variable => {
    const endpoint = env.text(variable)
    if (endpoint && !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? '')) {
      env.addIssue(variable, 'must be a URL such as http://127.0.0.1:4318')
    }
    return endpoint
  })
  const exporter = env.oneOf('OTEL_TRACES_EXPORTER', ['otlp', 'none'], endpoints.length > 0 ? 'otlp' : 'none')
  // Collectors accept both encodings at one address, and no other protocol there.
  env.oneOf('OTEL_EXPORTER_OTLP_PROTOCOL', ['http/json', 'http/protobuf'], 'http/json')
  const settings = {
    serviceName: env.text('OTEL_SERVICE_NAME') ?? 'allocation-api',
    sampler: env.oneOf('OTEL_TRACES_SAMPLER', TRACE_SAMPLERS, 'parentbased_always_on'),
    ratio: readRatio(env),
    headers: ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS']
      .flatMap(variable => env.text(variable) ?? [])
      .join(','),
  }
  return exporter === 'otlp' ? settings : null
}
