// The same tests, with every section.
import './main.ci.test.ts'
