import type { AllocationClient, CallOptions, Params, Result } from '@pool/client'
import { type CallId, callOperations, type NamePlan, type Operation } from '@pool/contract'
import type { CommandSpec, Input } from '../command.ts'
import type { ListView } from '../output.ts'
import type { Session } from '../session.ts'
import { parseCount } from '../values.ts'
import { limitFlag, NOTHING_CHANGED, take } from './flags.ts'
import { showNamePlan } from './record-changes.ts'

// Commands that follow from one operation of the contract.

export const LIST_LIMITS = { min: 1, max: Number.MAX_SAFE_INTEGER } as const

type Shared = Omit<CommandSpec, 'operations' | 'run'>

interface OneCall<Id extends CallId> extends Shared {
  readonly operation: Id
  /** Throws a UsageError if an argument or a flag is invalid. Absent: the operation has no parameters. */
  readonly params?: (input: Input, session: Session) => Params<Id> | Promise<Params<Id>>
  /** What the user confirms before the call: with `--yes`, or by typing `expected`. A dry run needs no confirmation. */
  readonly confirm?: (params: Params<Id>) => { readonly question: string; readonly expected: string }
  /** What the command waits for, if the service waits for another one. */
  readonly progress?: (params: Params<Id>) => string
  /** Resolves with the exit code if it is not 0. A plan, the result of a dry run of some operations, is shown without it. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands have nothing to resolve with
  readonly show: (session: Session, result: Result<Id>, params: Params<Id>, input: Input) => Promise<number | void>
}

/** A command that calls one operation once and shows its result. The parameter `dryRun` makes it a dry run. */
export const oneCall = <Id extends CallId>({
  operation,
  params: toParams,
  confirm,
  progress,
  show,
  ...spec
}: OneCall<Id>): CommandSpec => ({
  ...spec,
  operations: [operation],
  async run(session, input) {
    const params = (await toParams?.(input, session)) ?? ({} as Params<Id>)
    const api = await session.api()
    const isDryRun = 'dryRun' in params && params.dryRun === true
    if (confirm && !isDryRun) {
      const { question, expected } = confirm(params)
      await session.confirm(question, expected, input.flags.yes === true)
    }
    const method = api[operation] as (...args: readonly object[]) => Promise<Result<Id>>
    const call = (options: CallOptions) => method.apply(api, toParams ? [params, options] : [options])
    const { method: verb, isRead }: Operation = callOperations[operation]
    if (progress) session.progress.update(progress(params))
    const result = await (isDryRun || isRead || verb === 'get' ? call(session.reading) : session.write(call))
    session.progress.stop()
    const isPlan = isDryRun && 'plan' in callOperations[operation]
    if (isPlan) return showNamePlan(session, result as NamePlan)
    const exitCode = await show(session, result, params, input)
    if (input.flags.dryRun === true) session.output.note(NOTHING_CHANGED)
    return exitCode
  },
})

interface ListCall<Query, Item extends object> extends Shared {
  readonly operation: CallId
  /** Throws a UsageError if an argument or a flag is invalid. */
  readonly query: (input: Input) => Query
  readonly items: (api: AllocationClient, query: Query, options: CallOptions) => AsyncIterable<Item>
  readonly view: (query: Query) => ListView<Item>
}

/** A command that lists the items of an operation with pages. `--limit` is added to its flags. */
export const listCall = <Query, Item extends object>({
  operation,
  query: toQuery,
  items,
  view,
  flags = [],
  ...spec
}: ListCall<Query, Item>): CommandSpec => ({
  ...spec,
  flags: [...flags, limitFlag],
  operations: [operation],
  async run(session, input) {
    const { limit } = input.flags
    const count = limit === undefined ? undefined : parseCount(String(limit), '--limit', LIST_LIMITS)
    const query = toQuery(input)
    const api = await session.api()
    await session.output.list(take(items(api, query, session.reading), count), view(query))
  },
})
