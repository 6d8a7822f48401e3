extension ScannedReport.Meta {
  /// Passes over the value that `json` comes to next, which should be an object.
  /// - Parameter reserved: the keys that set `mayCollide`.
  init(_ json: inout JSONScanner, _ text: Span<UInt8>, reserved: ReservedKeys) throws(JSONError) {
    guard json.next(text) == UInt8(ascii: "{") else {
      try json.skipValue(text, depth: 1)
      self = .notAnObject
      return
    }
    guard try json.enter(text, close: UInt8(ascii: "}"), depth: 1) else {
      self = .empty
      return
    }
    let start = json.position
    var end = start
    var filter = KeyFilter()
    var mayCollide = false
    repeat {
      let key = try json.key(text)
      if filter.insert(key, in: text) || reserved.mayContain(key, in: text) { mayCollide = true }
      try json.skipValue(text, depth: 2)
      end = json.position
    } while try json.another(text, close: UInt8(ascii: "}"))
    self = .members(start..<end, mayCollide: mayCollide)
  }

  /// Reads the object from `start` to the end of `text`, as strictly as the scanner of a line.
  /// - Throws: `bad_request`.
  public init(scanning text: Span<UInt8>, from start: Int, reserved: ReservedKeys) throws(Refusal) {
    var json = JSONScanner()
    json.position = start
    do throws(JSONError) {
      self = try Self(&json, text, reserved: reserved)
      guard json.next(text) == nil else { throw json.failure("something follows the object") }
    } catch {
      throw Refusal(.badRequest, "`meta` is \(JSONError(error.reason, at: error.offset - start))")
    }
    if let offset = json.invalidUTF8 { throw Refusal(.badRequest, "invalid UTF-8 at byte \(offset - start) of `meta`") }
  }
}
