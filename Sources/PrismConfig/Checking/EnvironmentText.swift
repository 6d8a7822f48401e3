import PrismProtocol

/// Puts the environment into a file's strings, after parsing: a value can never become structure.
///
/// `${NAME}` is the environment's NAME. `${NAME:-other}` is `other` (up to the first `}`) if NAME is unset or empty.
/// `$$` is a dollar; any other dollar is literal.
struct EnvironmentText {
  let environment: [String: String]
  private(set) var faults: [(line: Int, key: String, message: String)] = []

  mutating func resolved(_ node: YAMLNode, key: String = "") -> YAMLNode {
    var result = node
    switch node.value {
    case .refused: break
    case .sequence(let elements):
      result.value = .sequence(elements.enumerated().map { resolved($1, key: "\(key)[\($0)]") })
    case .mapping(let entries):
      result.value = .mapping(
        entries.map { entry in
          var entry = entry
          entry.node = resolved(entry.node, key: key.isEmpty ? entry.key : "\(key).\(entry.key)")
          return entry
        })
    case .scalar(let scalar):
      guard scalar.text.contains("$") else { break }
      do throws(SubstitutionFault) {
        let text = try replaced(scalar.text)
        result.value = .scalar(YAMLScalar(text: text, isPlain: scalar.isPlain, written: scalar.text))
      } catch {
        faults.append((node.line, key, error.message))
        result.value = .refused
      }
    }
    return result
  }

  private struct SubstitutionFault: Error { let message: String }

  private func replaced(_ text: String) throws(SubstitutionFault) -> String {
    var result = ""
    var rest = text[...]
    while let dollar = rest.firstIndex(of: "$") {
      result += rest[..<dollar]
      rest = rest[rest.index(after: dollar)...]
      if rest.first == "$" {
        result += "$"
        rest = rest.dropFirst()
      } else if rest.first == "{" {
        guard let end = rest.firstIndex(of: "}") else {
          throw SubstitutionFault(message: "has a ${ without its }; write $$ for a dollar")
        }
        result += try value(of: String(rest[rest.index(after: rest.startIndex)..<end]))
        rest = rest[rest.index(after: end)...]
      } else {
        result += "$"
      }
    }
    result += rest
    guard result.utf8.count <= YAMLParser.scalarBytesMax else {
      throw SubstitutionFault(message: "is over \(YAMLParser.scalarBytesMax) bytes with the environment's value in it")
    }
    return result
  }

  private func value(of reference: String) throws(SubstitutionFault) -> String {
    let parts = reference.firstRange(of: ":-").map { (reference[..<$0.lowerBound], reference[$0.upperBound...]) }
    let name = String(parts?.0 ?? reference[...])
    let isName =
      name.utf8.allSatisfy { $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "_") } && name.first?.isNumber == false
    guard isName else {
      throw SubstitutionFault(
        message: "has ${\(name.shownInFault)}, which names no environment variable: A-Z a-z 0-9 _")
    }
    let value = environment[name]
    if parts?.1.contains("${") == true {
      throw SubstitutionFault(
        message: "has a ${ within ${\(name):-…}, which is not taken; the fallback is plain text up to the }")
    }
    if let fallback = parts?.1 { return value.flatMap { $0.isEmpty ? nil : $0 } ?? String(fallback) }
    guard let value else {
      throw SubstitutionFault(
        message: "has ${\(name)}, which the environment does not set; set it or write ${\(name):-other}")
    }
    return value
  }
}
