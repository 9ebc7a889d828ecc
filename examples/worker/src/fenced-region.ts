import { DurableObject } from 'cloudflare:workers'

export interface PrimaryRegion {
  readonly region: string
  readonly fence: number
}

export type ClaimResult = 'written' | 'fenced'

/**
 * A resource that checks the fencing token. It accepts a write only with a token that is not below the highest so far. The
 * comparison and the write are one step, since an object runs one event at a time and storage without `await` is atomic.
 */
export class FencedRegion extends DurableObject {
  read(): PrimaryRegion {
    return this.ctx.storage.kv.get<PrimaryRegion>('primary') ?? { region: '', fence: 0 }
  }

  claim(region: string, fence: number): ClaimResult {
    if (fence < this.read().fence) return 'fenced'
    this.ctx.storage.kv.put('primary', { region, fence })
    return 'written'
  }

  /** A request with the same token that arrives later is rejected as well. */
  standDown(fence: number): ClaimResult {
    return this.claim('', fence) === 'fenced' ? 'fenced' : this.claim('', fence + 1)
  }
}
