extension UInt8 {
  var isASCIILetter: Bool {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self || UInt8(ascii: "a")...UInt8(ascii: "z") ~= self
  }
}
