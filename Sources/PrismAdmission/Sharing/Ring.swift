/// A queue in an array: its front is given back in strides, so that taking an element costs nothing.
public struct Ring<Element> {
  private var elements: [Element?] = []
  private var head = 0

  /// Whether there is no element.
  public var isEmpty: Bool { head == elements.count }
  /// The number of elements.
  public var count: Int { elements.count - head }
  /// The oldest element; nil if there is no element.
  public var first: Element? { isEmpty ? nil : elements[head] }

  /// Adds an element behind all others.
  public mutating func append(_ element: Element) { elements.append(element) }

  /// Drops all elements, and keeps the memory of few.
  public mutating func removeAll() {
    elements.removeAll(keepingCapacity: elements.capacity <= 64)
    head = 0
  }

  /// Takes the oldest element. - Returns: nil if there is no element.
  @discardableResult
  public mutating func removeFirst() -> Element? {
    guard !isEmpty else { return nil }
    let element = elements[head]
    elements[head] = nil
    head += 1
    if head >= 32 && head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Changes the last element in place. - Returns: nil if there is no element.
  public mutating func withLast<Result>(_ body: (inout Element) -> Result) -> Result? {
    guard !isEmpty, var element = elements[elements.count - 1] else { return nil }
    elements[elements.count - 1] = nil  // so that it isn't copied when it is changed
    defer { elements[elements.count - 1] = element }
    return body(&element)
  }

  /// Changes the oldest element in place. - Returns: nil if there is no element.
  public mutating func withFirst<Result>(_ body: (inout Element) -> Result) -> Result? {
    guard !isEmpty, var element = elements[head] else { return nil }
    elements[head] = nil
    defer { elements[head] = element }
    return body(&element)
  }
}

extension Ring: Sendable where Element: Sendable {}
