/** What the repository must do with a name, in plain TypeScript. Times are milliseconds of the model's own clock. */

export interface ModelLimits {
  readonly ttlMs: number
  readonly maxAgeMs: number
  readonly coolOffMs: number
}

export interface ModelRow {
  token: string
  /** The token that took the name back, until the commit. */
  formerToken?: string | undefined
  state: 'reserved' | 'active' | 'released'
  readonly reservedAt: number
  expiresAt: number
  /** 0: no cool-off. */
  coolOffUntil: number
  lineage: string | null
  /** Committed since it was reserved. */
  wasActive: boolean
  address: string
}

/** Who reserves: a client without a former claim, the client of a token, or a lineage. */
export interface ModelFormer {
  readonly token?: string | undefined
  readonly lineage?: string | undefined
}

export class NameModel {
  now = 0
  readonly rows = new Map<string, ModelRow>()
  readonly #limits: ModelLimits

  constructor(limits: ModelLimits) {
    this.#limits = limits
  }

  live(name: string): ModelRow | undefined {
    const row = this.rows.get(name)
    return row && (row.state === 'active' || (row.state === 'reserved' && row.expiresAt > this.now)) ? row : undefined
  }

  liveNames(): string[] {
    return [...this.rows.keys()].filter(name => this.live(name)).sort()
  }

  freeAt(row: ModelRow): number {
    return row.state === 'reserved' ? Math.max(row.expiresAt, row.coolOffUntil) : row.coolOffUntil
  }

  isFree(name: string): boolean {
    const row = this.rows.get(name)
    return !row || (!this.live(name) && row.lineage === null && this.freeAt(row) <= this.now)
  }

  isCoolingOff(name: string): boolean {
    const row = this.rows.get(name)
    return row !== undefined && !this.live(name) && row.lineage === null && this.freeAt(row) > this.now
  }

  check(name: string): string | null {
    const row = this.rows.get(name)
    if (!row || this.isFree(name)) return null
    if (row.lineage !== null) return row.wasActive ? 'active' : 'reserved'
    return this.live(name) ? row.state : 'cooling-off'
  }

  reserve(name: string, token: string, former: ModelFormer = {}): string {
    const row = this.rows.get(name)
    const { token: formerToken, lineage } = former
    const hasToken = row && formerToken !== undefined && [row.token, row.formerToken].includes(formerToken)
    const isFormer = row && (row.lineage === null ? hasToken : row.lineage === lineage)
    if (row && !this.isFree(name) && (this.live(name) || !isFormer)) {
      return this.isCoolingOff(name) ? 'cooling-off' : 'conflict'
    }
    this.rows.set(name, {
      token,
      formerToken,
      state: 'reserved',
      reservedAt: this.now,
      expiresAt: this.now + this.#limits.ttlMs,
      coolOffUntil: row && row.coolOffUntil > this.now ? row.coolOffUntil : 0,
      lineage: row?.lineage ?? null,
      wasActive: false,
      address: '',
    })
    return 'granted'
  }

  #rejection(name: string, token: string): string | null {
    const row = this.rows.get(name)
    if (!row || row.state === 'released') return 'not-found'
    if (row.state === 'active') return 'already-active'
    if (row.expiresAt <= this.now) return 'reservation-expired'
    return row.token === token ? null : 'token-mismatch'
  }

  commit(name: string, token: string, address: string): string {
    const rejection = this.#rejection(name, token)
    const row = this.rows.get(name)
    if (!rejection && row)
      Object.assign(row, { state: 'active', wasActive: true, coolOffUntil: 0, formerToken: undefined, address })
    return rejection ?? 'committed'
  }

  renew(name: string, token: string): string {
    const rejection = this.#rejection(name, token)
    const row = this.rows.get(name)
    const { ttlMs, maxAgeMs } = this.#limits
    if (!rejection && row) {
      row.expiresAt = Math.max(row.expiresAt, Math.min(this.now + ttlMs, row.reservedAt + maxAgeMs))
    }
    return rejection ?? 'renewed'
  }

  update(name: string, token: string | undefined, address: string): string {
    const row = this.live(name)
    if (!row) return 'not-found'
    if (row.state !== 'active') return 'not-active'
    if (token !== undefined && row.token !== token) return 'token-mismatch'
    row.address = address
    return 'updated'
  }

  release(name: string, token: string | undefined): string {
    const row = this.live(name)
    if (!row) return 'not-found'
    if (token !== undefined && row.token !== token) return 'token-mismatch'
    if (row.state === 'active') row.coolOffUntil = this.now + this.#limits.coolOffMs
    row.state = 'released'
    if (this.isFree(name)) this.rows.delete(name)
    return 'released'
  }

  lift(name: string): boolean {
    const row = this.rows.get(name)
    if (!row || !this.isCoolingOff(name)) return false
    Object.assign(row, { state: 'released', coolOffUntil: this.now })
    return true
  }

  hold(name: string, token: string, lineage: string): boolean {
    const row = this.rows.get(name)
    if (!row || row.state === 'released' || row.token !== token) return false
    if (row.lineage === null ? !this.live(name) : row.lineage !== lineage) return false
    row.lineage = lineage
    return true
  }

  letGo(name: string, lineage: string): boolean {
    const row = this.rows.get(name)
    if (row?.lineage !== lineage) return false
    row.lineage = null
    if (row.state === 'released') {
      row.coolOffUntil = Math.max(row.coolOffUntil, this.now + (row.wasActive ? this.#limits.coolOffMs : 0))
    }
    return true
  }

  /** Returns how many rows it deletes. */
  sweep(): number {
    const free = [...this.rows.keys()].filter(name => this.isFree(name))
    for (const name of free) this.rows.delete(name)
    return free.length
  }
}
