import type { Frame } from './cpu-profile.ts'

const WIDTH = 1_200
const ROW = 16
const HEAD = 24
const CHARACTER = 6.2
/** Narrower frames cannot be seen and would make up most of the file. */
const MIN_WIDTH = 1.5

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** By the origin of the code: V8 and the kernel, Node, a dependency, this project. */
const toColor = (name: string): string => {
  if (/^\(/.test(name) && !name.startsWith('(anonymous) ')) return '#b8b8b8'
  if (/ node:/.test(name)) return '#8fb8de'
  if (/ (?:allocation-api|lease-witness|runtime|contract)\//.test(name)) return '#f0a35e'
  return name === 'all' ? '#dddddd' : '#a8cf8e'
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

/** An SVG in which each frame is below its callees, and as wide as its time. A tooltip has its name and its share. */
export const toFlameGraph = (tree: Frame, title: string): string => {
  const boxes: { frame: Frame; x: number; depth: number; width: number }[] = []
  const place = (frame: Frame, x: number, depth: number): void => {
    const width = (frame.totalUs / tree.totalUs) * WIDTH
    if (width < MIN_WIDTH) return
    boxes.push({ frame, x, depth, width })
    let from = x
    for (const child of frame.children) {
      place(child, from, depth + 1)
      from += (child.totalUs / tree.totalUs) * WIDTH
    }
  }
  place(tree, 0, 0)
  const rows = 1 + Math.max(...boxes.map(({ depth }) => depth))
  const height = HEAD + rows * ROW
  const drawn = boxes.map(({ frame, x, depth, width }) => {
    const y = height - (depth + 1) * ROW
    const fits = Math.floor((width - 4) / CHARACTER)
    const text = fits < 3 ? '' : frame.name.length <= fits ? frame.name : `${frame.name.slice(0, fits - 1)}…`
    const label = text && `<text x="${(x + 2).toFixed(1)}" y="${y + 12}">${escapeXml(text)}</text>`
    const shares = `${percent(frame.totalUs / tree.totalUs)}, itself ${percent(frame.selfUs / tree.totalUs)}`
    return (
      `<g><title>${escapeXml(frame.name)}: ${shares}</title>` +
      `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${toColor(frame.name)}"/>${label}</g>`
    )
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="10" role="img" aria-label="${escapeXml(title)}">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="4" y="16" font-size="13">${escapeXml(title)}</text>`,
    ...drawn,
    '</svg>',
    '',
  ].join('\n')
}
