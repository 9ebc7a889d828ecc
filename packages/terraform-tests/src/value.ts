import { decode, ExtensionCodec, encode } from '@msgpack/msgpack'

/** What Terraform does not know yet: the provider fills it in when it applies. */
export class Unknown {}
export const unknown = new Unknown()

export type Value = null | boolean | number | string | Unknown | Value[] | { [name: string]: Value }
export type Attributes = { [name: string]: Value }

export const isObject = (value: Value | undefined): value is Attributes =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Unknown)

export const isText = (value: Value | undefined): value is string => typeof value === 'string'

const codec = new ExtensionCodec()
codec.register({
  type: 0,
  encode: value => (value instanceof Unknown ? new Uint8Array([0]) : null),
  decode: () => unknown,
})
// An unknown of which something is known already, such as that it will not be null.
codec.register({ type: 12, encode: () => null, decode: () => unknown })

export const toWire = (value: Value): { msgpack: Uint8Array } => ({ msgpack: encode(value, { extensionCodec: codec }) })

export const fromWire = (wire: { msgpack: Uint8Array } | null): Value =>
  wire === null || wire.msgpack.length === 0 ? null : (decode(wire.msgpack, { extensionCodec: codec }) as Value)

export function equal(one: Value | undefined, other: Value | undefined): boolean {
  if (one instanceof Unknown || other instanceof Unknown) return false
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((element, index) => equal(element, other[index]))
  }
  if (isObject(one) && isObject(other)) {
    return [...new Set([...Object.keys(one), ...Object.keys(other)])].every(name => equal(one[name], other[name]))
  }
  return one === other
}
