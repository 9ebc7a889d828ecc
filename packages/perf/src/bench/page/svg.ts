/** A piece of SVG, or text that is not escaped yet. */
export type Node = { readonly markup: string } | string

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** For text and for attributes (XML 1.0, section 2.4). */
export const escapeXml = (text: string): string => text.replace(/[&<>"]/g, character => escapes[character] ?? '')

/** A hundredth of a pixel is enough, and no run prints another digit than the last one did. */
const numberText = (value: number): string => String(Number(value.toFixed(2)))

/** Attributes in the order given; what is undefined is left out. */
export const element = (
  name: string,
  attributes: Readonly<Record<string, string | number | undefined>>,
  children: readonly Node[] = [],
): { readonly markup: string } => {
  const said = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [` ${key}="${typeof value === 'number' ? numberText(value) : escapeXml(value)}"`],
  )
  const inside = children.map(child => (typeof child === 'string' ? escapeXml(child) : child.markup)).join('')
  return { markup: inside === '' ? `<${name}${said.join('')}/>` : `<${name}${said.join('')}>${inside}</${name}>` }
}

/** The points of a line or of an outline. */
export const pointsText = (points: readonly (readonly [number, number])[]): string =>
  points.map(([x, y]) => `${numberText(x)},${numberText(y)}`).join(' ')
