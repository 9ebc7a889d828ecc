export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

export interface Span {
  rename(name: string): void
  /** The attributes must not hold secrets, or values of a request. */
  setAttributes(attributes: SpanAttributes): void
}

/** The trace of a client: the headers of W3C Trace Context. */
export interface ParentHeaders {
  readonly traceparent: string
  readonly tracestate: string | undefined
}

export interface SpanOptions {
  readonly attributes?: SpanAttributes
  /** Default: the span in which `run` is called. */
  readonly parent?: ParentHeaders | undefined
  /** No span outside of another one, as for statements that repeat every second. */
  readonly needsParent?: boolean
  /** `server`: the work for a request; `client`: a call to another system. */
  readonly kind?: 'server' | 'client' | 'internal'
}

export interface Tracer {
  /**
   * Runs `work` in a new span. The span ends when the promise that `work` returns settles; a rejection marks it as failed,
   * with the code or the name of the error but without its text.
   */
  run<Result>(name: string, options: SpanOptions, work: (span: Span) => Promise<Result>): Promise<Result>
}

/** Ignores everything. */
export const NO_SPAN: Span = { rename() {}, setAttributes() {} }

/** Runs `work` in a span, or just runs it. Null: tracing is off. */
export const runInSpan = <Result>(
  tracer: Tracer | null,
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<Result>,
): Promise<Result> => (tracer ? tracer.run(name, options, work) : work(NO_SPAN))

/**
 * `repository`, each call of which is a span with the name of the method, if it is part of a trace. The statement and its
 * parameters are not in the span. Without a tracer it is `repository` itself.
 */
export const traceStatements = <
  Repository extends Readonly<Record<keyof Repository, (...args: never[]) => Promise<unknown>>>,
>(
  tracer: Tracer | null,
  name: string,
  repository: Repository,
): Repository => {
  if (!tracer) return repository
  const methods = Object.entries<(...args: never[]) => Promise<unknown>>(repository).map(([method, call]) => {
    const attributes = { 'db.system.name': 'postgresql', 'db.operation.name': `${name}.${method}` }
    const options = { kind: 'client', needsParent: true, attributes } as const
    return [method, (...args: never[]) => tracer.run(`sql ${name}.${method}`, options, () => call(...args))]
  })
  return Object.fromEntries(methods)
}
