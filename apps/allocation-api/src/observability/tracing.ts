import { AsyncLocalStorage } from 'node:async_hooks'
import { type Context, defaultTextMapGetter, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { parseKeyPairsIntoRecord, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { withTimeout } from '@pool/runtime/database/time'
import type { TracingSettings } from '../config/tracing.ts'
import { proxyEnv } from '../lib/proxy.ts'
import { NO_SPAN, type ParentHeaders, type Tracer } from './domain/tracer.ts'

// Imported only if tracing is on: it costs start time and memory.

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const

const createSampler = ({ sampler, ratio }: TracingSettings): Sampler => {
  const base = sampler.replace('parentbased_', '')
  const root =
    base === 'always_on'
      ? new AlwaysOnSampler()
      : base === 'always_off'
        ? new AlwaysOffSampler()
        : new TraceIdRatioBasedSampler(ratio)
  return base === sampler ? root : new ParentBasedSampler({ root })
}

const toErrorType = (error: unknown): string => {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

export interface Tracing {
  readonly tracer: Tracer
  /** Sends the spans that have ended. Never rejects: a collector that is away must not delay or fail a shutdown. */
  stop(): Promise<void>
}

const STOP_TIMEOUT_MS = 2_000

/** Exports spans over OTLP/HTTP as JSON. The exporter reads the endpoint and timeouts from the environment. */
export const startTracing = (settings: TracingSettings, version: string): Tracing => {
  const headers = parseKeyPairsIntoRecord(settings.headers)
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': settings.serviceName, 'service.version': version }),
    sampler: createSampler(settings),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ headers, httpAgentOptions: { keepAlive: true, proxyEnv } }),
      }),
    ],
  })
  const tracer = provider.getTracer('allocation-api', version)
  const propagator = new W3CTraceContextPropagator()
  const contexts = new AsyncLocalStorage<Context>()
  const toContext = (headers: ParentHeaders | undefined): Context =>
    headers ? propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter) : (contexts.getStore() ?? ROOT_CONTEXT)

  return {
    tracer: {
      async run(name, { attributes = {}, parent, needsParent = false, kind = 'internal' }, work) {
        const context = toContext(parent)
        if (needsParent && !trace.getSpan(context)) return work(NO_SPAN)
        const span = tracer.startSpan(name, { kind: KINDS[kind], attributes }, context)
        try {
          return await contexts.run(trace.setSpan(context, span), () =>
            work({
              rename: text => void span.updateName(text),
              setAttributes: values => void span.setAttributes(values),
            }),
          )
        } catch (error) {
          span.setAttribute('error.type', toErrorType(error))
          span.setStatus({ code: SpanStatusCode.ERROR })
          throw error
        } finally {
          span.end()
        }
      },
    },
    async stop() {
      await withTimeout(provider.shutdown(), STOP_TIMEOUT_MS).catch(() => {})
    },
  }
}
