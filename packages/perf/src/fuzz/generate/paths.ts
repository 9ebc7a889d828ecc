import type { Choices } from './choices.ts'

const percent = (text: string): string =>
  [...Buffer.from(text)].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join('')

/**
 * Variants of a path: equivalent, different or invalid. Latin-1 text, a byte per character, without the
 * bytes that end a request line (RFC 9112 section 3).
 */
const spellings: readonly ((path: string, choices: Choices) => string)[] = [
  path => path.replaceAll('/', '//'),
  path => path.replace(/\/([^/]*)$/, '/./$1'),
  path => path.replace(/\/([^/]*)$/, '/x/../$1'),
  path => path.replace(/\/([^/]*)$/, '/%2e%2e/$1'),
  path => `${path}/`,
  path => `${path}/..`,
  path => `${path}/%2e%2E/%2e%2e/%2e%2e/etc/passwd`,
  path => path.replace(/\/([^/]*)$/, '%2F$1'),
  path => path.replace(/\/([^/]*)$/, '%2f$1'),
  path => path.replace(/\/([^/]*)$/, '\\$1'),
  path => path.replace(/\/([^/]*)$/, '%5c$1'),
  path => path.toUpperCase(),
  (path, choices) => {
    const index = choices.below(path.length)
    return path.slice(0, index) + percent(path[index] ?? '') + path.slice(index + 1)
  },
  path => path.split('/').map(percent).join('/'),
  path => path.replace(/[a-z]+$/, percent),
  path => path.replace(/[a-z]+$/, text => percent(text).replaceAll('%', '%25')),
  path => `${path}%00`,
  path => `${path}%`,
  path => `${path}%2`,
  path => `${path}%zz`,
  path => `${path}%ff%fe`,
  path => `${path}%c0%af`,
  path => `${path}%ed%a0%80`,
  path => `${path}%u0041`,
  path => `${path}%0d%0aSet-Cookie:%20a=b`,
  path => `${path}\u00ff\u00fe`,
  path => `${path}\u00c3\u00a9`,
  path => `${path}${'a'.repeat(600)}`,
  path => `${path}/${'%41'.repeat(2_000)}`,
  path => `${path}/${'a/'.repeat(2_000)}`,
  path => `${path};v=1`,
  path => `${path}|{}^\`"<>`,
  path => `${path}#fragment`,
  path => `http://127.0.0.1${path}`,
  path => `https://user:pass@other.example:99${path}`,
  path => `//other.example${path}`,
  path => `/${path}`,
  path => path.slice(1) || '.',
  () => '*',
  () => '/',
  () => '/__proto__',
  () => '/api/v1/pool/__proto__/check?sub=constructor',
  () => '/lease/',
  () => '/lease',
  () => '/lease/.',
  () => '/lease/..',
  () => '/history/%20',
  () => 'about:blank',
]

/** One change, sometimes two. */
export const mutatePath = (path: string, choices: Choices): string => {
  const changed = choices.pick(spellings)(path, choices)
  return choices.chance(0.15) && changed.length < 2_000 ? choices.pick(spellings)(changed, choices) : changed
}
