/// Why a text is not the YAML that prism takes, and on which line (from 1).
package struct YAMLFault: Error, Sendable, Equatable {
  package let line: Int
  package let message: String
  init(line: Int, _ message: String) { (self.line, self.message) = (line, message) }
}
