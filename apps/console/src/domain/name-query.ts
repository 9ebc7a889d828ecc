import type { NameFilter } from './route.ts'

/** The parts of a search for names, as the service takes them. */
export interface NameSearch {
  readonly q?: string
  readonly address?: string
  readonly createdBy?: string
  readonly pool?: string
  readonly state?: Exclude<NameFilter['state'], ''>
  readonly dns?: Exclude<NameFilter['dns'], ''>
}

/** A creator can have spaces, so that it is the rest of the text. */
const CREATOR = /(?:^|\s)by:(.*)$/
/** A label begins with a letter, so that a word that begins with a digit is an address. */
const ADDRESS_WORD = /^(?:ip:)?([0-9][0-9.]*)$/

/** Reads the text of the search box: `acme`, `acme.pool.te`, `203.0.113`, `ip:203`, `by:ops@acme.example`. */
export const parseNameSearch = ({ text, pool, state, dns }: NameFilter): NameSearch => {
  const createdBy = CREATOR.exec(text)?.[1]?.trim() ?? ''
  const words = text.replace(CREATOR, '').split(/\s+/).filter(Boolean)
  const address = words.map(word => ADDRESS_WORD.exec(word)?.[1]).find(found => found !== undefined) ?? ''
  const q = words.filter(word => !ADDRESS_WORD.test(word)).join(' ')
  return {
    ...(q === '' ? {} : { q }),
    ...(address === '' ? {} : { address }),
    ...(createdBy === '' ? {} : { createdBy }),
    ...(pool === '' ? {} : { pool }),
    ...(state === '' ? {} : { state }),
    ...(dns === '' ? {} : { dns }),
  }
}
