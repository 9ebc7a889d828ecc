/** Null: not the origin of a web page. The origin `null` of a sandboxed page is none, because every site can create such a page. */
export const parseOrigin = (origin: string): URL | null =>
  /^https?:\/\/[^\s/?#@\\,*]+$/i.test(origin) ? URL.parse(origin) : null

/** The form in which origins are compared: lower case, without the default port. Null: not the origin of a web page. */
export const normalizeOrigin = (origin: string): string | null => parseOrigin(origin)?.origin ?? null
