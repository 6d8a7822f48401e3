extension String {
  /// Whether it has visible ASCII characters only, from `!` to `~`.
  public var isVisibleASCII: Bool { utf8.allSatisfy { (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) } }
}
