import type { Creation } from '../../domain/types.ts'
import type { CreationEvent } from './output.ts'

/** A resource of a state, as far as it shows that a creation was saved. */
export interface SavedResource {
  readonly address: string
  readonly attributes: Readonly<Record<string, unknown>>
  /** An object that another one has replaced, and that remains to be destroyed. */
  readonly isDeposed: boolean
}

const toId = ({ attributes }: SavedResource): string => String(attributes.id)

/** The creations whose objects this state does not have. */
export const findUnsaved = (creations: readonly Creation[], resources: readonly SavedResource[]): Creation[] =>
  creations.filter(
    ({ address, replaces }) =>
      !resources.some(found => found.address === address && !found.isDeposed && toId(found) !== replaces),
  )

/** The creations of one command, as its output shows them. */
export class Creations {
  readonly #before: readonly SavedResource[]
  readonly #started = new Map<string, Creation>()
  readonly #ended = new Map<string, 'complete' | 'failed'>()
  #hasLostProvider = false

  /** `before`: the state that the command changes. */
  constructor(before: readonly SavedResource[]) {
    this.#before = before
  }

  /** Those that a state may lack if every process were killed now: a remote state is not written at once. */
  get started(): readonly Creation[] {
    return [...this.#started.values()]
  }

  add(event: CreationEvent): void {
    if (event.kind === 'provider-lost') this.#hasLostProvider = true
    else if (event.kind === 'started') {
      const { address } = event
      const replaced = this.#before.find(resource => resource.address === address && !resource.isDeposed)
      this.#started.set(address, replaced ? { address, replaces: toId(replaced) } : { address })
    } else this.#ended.set(event.address, event.kind)
  }

  /**
   * Those that the state after the command must show. `exitCode`: null if the command was killed. What failed does not
   * exist, or is tainted. A command that fails says itself that it could not save what it completed; one that succeeds is
   * not believed. In a state that was saved since, the address is enough: an object can have the identifier of the one that
   * it replaces.
   */
  findDoubtful(exitCode: number | null, hasSaved: boolean): readonly Creation[] {
    return this.started.flatMap(creation => {
      const { address } = creation
      const end = exitCode === null ? undefined : this.#ended.get(address)
      if (end === 'failed') return this.#hasLostProvider ? [creation] : []
      if (end === 'complete' && exitCode !== 0) return []
      return [end === 'complete' && hasSaved ? { address } : creation]
    })
  }
}
