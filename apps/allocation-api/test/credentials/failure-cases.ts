import type { Identities } from '../support/credentials/identities.ts'
import {
  type ConnectionHandler,
  closeAtOnce,
  errorXml,
  listXml,
  overTls,
  resetAtOnce,
  toHttpResponse,
  withoutTls,
} from '../support/credentials/scripted-server.ts'

/** A server whose behaviour says nothing about the credentials, and the message for it. */
export interface FailureCase {
  readonly what: string
  readonly handler: ConnectionHandler
  readonly message: RegExp
}

/** Failures below HTTP semantics, the same for both kinds of checks. */
export const createTransportFailures = ({
  good,
  otherName,
  expired,
  unknownCa,
}: Identities): readonly FailureCase[] => {
  const raw = (text: string) => overTls(good, socket => void socket.end(text, 'latin1'))
  return [
    { what: 'closes at once', handler: closeAtOnce, message: /ended the connection/ },
    { what: 'resets at once', handler: resetAtOnce, message: /ended the connection/ },
    { what: 'closes after the request', handler: raw(''), message: /ended the connection/ },
    { what: 'a certificate for another name', handler: overTls(otherName, () => {}), message: /TLS/ },
    { what: 'a certificate that has expired', handler: overTls(expired, () => {}), message: /TLS/ },
    { what: 'a certificate of an unknown authority', handler: overTls(unknownCa, () => {}), message: /TLS/ },
    { what: 'plain HTTP', handler: withoutTls(toHttpResponse(200, listXml('x'))), message: /TLS/ },
    { what: 'garbage instead of TLS', handler: withoutTls('\0\xff garbage\r\n'), message: /TLS/ },
    { what: 'garbage instead of HTTP', handler: raw('garbage\r\n\r\n'), message: /not HTTP/ },
    {
      what: 'endless header fields',
      handler: raw(`HTTP/1.1 200 OK\r\nA: ${'a'.repeat(20_000)}`),
      message: /not HTTP/,
    },
    { what: 'half a body', handler: raw(toHttpResponse(200, listXml('x')).slice(0, -40)), message: /truncated/ },
    {
      what: 'a huge body',
      handler: raw(toHttpResponse(200, `${listXml('x')}${' '.repeat(1_024 * 1_024)}`)),
      message: /too large/,
    },
  ]
}

/** Complete HTTP responses that say nothing about the credentials. */
export const createHttpFailures = ({ good }: Identities, target: number): readonly FailureCase[] => {
  const respond = (text: string) => overTls(good, socket => void socket.end(text))
  const location = `Location: https://fsn1.storage.test:${target}/`
  return [
    { what: '301 to a good server', handler: respond(toHttpResponse(301, '', [location])), message: /redirect/ },
    { what: '307 to a good server', handler: respond(toHttpResponse(307, '', [location])), message: /redirect/ },
    {
      what: '429',
      handler: respond(toHttpResponse(429, errorXml('AccessDenied'))),
      message: /limiting the request rate/,
    },
    { what: '500', handler: respond(toHttpResponse(500)), message: /status 500/ },
    { what: '502 with HTML', handler: respond(toHttpResponse(502, '<html>mark</html>')), message: /status 502/ },
    { what: '503', handler: respond(toHttpResponse(503, errorXml('ServiceUnavailable'))), message: /status 503/ },
    { what: '404', handler: respond(toHttpResponse(404)), message: /status 404/ },
  ]
}

/** Responses that are not S3's, or not about the keys. */
export const createS3Failures = ({ good }: Identities): readonly FailureCase[] => {
  const respond = (status: number, body: string) =>
    overTls(good, socket => void socket.end(toHttpResponse(status, body)))
  const entities = '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
  return [
    { what: '200 with HTML', handler: respond(200, '<!doctype html><html></html>'), message: /not an S3 response/ },
    { what: '200 with nothing', handler: respond(200, ''), message: /not an S3 response/ },
    { what: '200 with another XML', handler: respond(200, '<ListBucketResult/>'), message: /not an S3 response/ },
    { what: '200 with an error', handler: respond(200, errorXml('InvalidAccessKeyId')), message: /not an S3 response/ },
    {
      what: '200 with an entity bomb',
      handler: respond(200, entities + listXml('&b;')),
      message: /not an S3 response/,
    },
    { what: 'the listing of anonymous', handler: respond(200, listXml('anonymous')), message: /as anonymous/ },
    { what: '503 SlowDown', handler: respond(503, errorXml('SlowDown')), message: /limiting the request rate/ },
    { what: '403 RequestTimeTooSkewed', handler: respond(403, errorXml('RequestTimeTooSkewed')), message: /clock/ },
    {
      what: '400 about a header',
      handler: respond(400, errorXml('AuthorizationHeaderMalformed')),
      message: /not an S3 response/,
    },
  ]
}
