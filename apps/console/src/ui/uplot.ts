// A chunk of its own: the first page does not wait for it.
import 'uplot/dist/uPlot.min.css'

export { default as UPlot } from 'uplot'
