import { createHash } from 'node:crypto'

/** What the bearer of a token may do, as the oracle knows it. */
export interface TokenRights {
  readonly token: string
  /** `none`: the token has expired. */
  readonly access: 'none' | 'read' | 'write'
  /** Prefixes of slots; null: all slots. */
  readonly slots: readonly string[] | null
  /** Names of holders, and prefixes followed by `*`; null: all holders. */
  readonly holders: readonly string[] | null
  /** Whether the token has so few requests per minute that 429 is expected. */
  readonly isLimited: boolean
}

const unrestricted = { access: 'write', slots: null, holders: null, isLimited: false } as const

/** The rights of a client's token. Each client has slots of its own, `client <number>/…` and `é 💥/<number>`. */
const createRights = (number: number, token: string): TokenRights => {
  const rights = { ...unrestricted, token }
  const own = [`client ${number}/`, 'shared/0']
  switch (number % 8) {
    case 3:
      return { ...rights, slots: own }
    case 4:
      return { ...rights, access: 'read' }
    case 5:
      return { ...rights, access: 'read', slots: own }
    case 6:
      return { ...rights, holders: [`region-a/${number}`, `region-${number}*`] }
    case 7:
      return number % 16 === 7 ? { ...rights, slots: ['é'], isLimited: true } : { ...rights, access: 'none' }
    default:
      return rights
  }
}

const toPolicy = ({ token, access, slots, holders, isLimited }: TokenRights, number: number): object => ({
  name: `client-${number}`,
  token: `sha256:${createHash('sha256').update(token).digest('hex')}`,
  access: access === 'read' ? 'read' : 'write',
  ...(slots ? { slots } : {}),
  ...(holders ? { holders } : {}),
  ...(access === 'none' ? { expiresAt: '2026-01-01T00:00:00Z' } : {}),
  ...(isLimited ? { maxRequestsPerMinute: 60 } : {}),
})

/** The tokens of the clients and the settings of the witness that accepts them. Every token contains the mark. */
export const createWitnessTokens = (
  mark: string,
  clients: number,
): { readonly rights: readonly TokenRights[]; readonly settings: Readonly<Record<string, string>> } => {
  const listed = [`WA${mark}0123456789abcdef`, `WB${mark}0123456789abcdef`] as const
  const rights = Array.from({ length: clients }, (_, number) =>
    number % 8 < 2
      ? { ...unrestricted, token: listed[number % 2 === 0 ? 0 : 1] }
      : createRights(number, `WP${mark}${number.toString().padStart(4, '0')}`),
  )
  const policies = rights.flatMap((each, number) => (number % 8 < 2 ? [] : [toPolicy(each, number)]))
  return { rights, settings: { BEARER_TOKENS_CSV: listed.join(','), TOKEN_POLICIES: JSON.stringify(policies) } }
}
