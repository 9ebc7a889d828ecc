import { type LogLevel, log } from '../src/log.ts'

type Settings = Parameters<typeof log>[0]

const levels: Readonly<Partial<Record<string, LogLevel>>> = { error: 'error', warn: 'info' }

const isObject = (text: string): boolean => {
  try {
    return text.startsWith('{') && typeof JSON.parse(text) === 'object'
  } catch {
    return false
  }
}

/** What workerd has written: the worker's lines as they are, its own words as lines of the same form. */
export const forwardLogLine = (
  settings: Settings,
  message: string,
  level: string,
  say: (line: string) => void,
): void => {
  if (isObject(message)) say(message)
  else log(settings, levels[level] ?? 'debug', { msg: 'workerd', text: message })
}
