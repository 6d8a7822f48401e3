/// Why a text is not the YAML that prism takes, and on which line (from 1).
package struct YAMLFault: Error, Sendable, Equatable {
  /// The line in the file, from 1.
  package let line: Int
  /// The rule that is broken, and the remedy.
  package let message: String
  init(line: Int, _ message: String) { (self.line, self.message) = (line, message) }
}
