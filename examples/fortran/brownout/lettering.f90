!> Letters as strokes, like a plotter's. A stroke is a row of digit pairs x y on a grid of 5 by 9 points:
!> base line at y = 2, small letters up to 6, capitals up to 8. Strokes are parted by a space.
module lettering
  implicit none (type, external)
  private
  public :: strokes_of

contains

  pure function strokes_of(letter) result(strokes)
    character, intent(in) :: letter
    character(:), allocatable :: strokes

    select case (letter)
    case ('A':'Z'); strokes = capital(letter)
    case ('a':'z'); strokes = small(letter)
    case default;   strokes = figure(letter)
    end select
  end function strokes_of

  pure function capital(letter) result(s)
    character, intent(in) :: letter
    character(:), allocatable :: s
    character(34), parameter :: glyph(26) = [character(34) :: &
      '022842 1434', '02083847463505 3544433202', '4738180703123243', '02082846442202', &
      '48080242 0535', '480802 0535', '47381807031232434525', '0208 4248 0545', &
      '2822 1838 1232', '4843321203', '0208 4804 1542', '080242', &
      '0208254842', '02084248', '183847433212030718', '02083847463505', &
      '183847433212030718 2442', '02083847463505 2542', '473818070615354443321203', '0848 2822', &
      '080312324348', '082248', '0812263248', '0842 0248', &
      '082548 2522', '08480242']

    s = trim(glyph(iachar(letter) - iachar('A') + 1))
  end function capital

  pure function small(letter) result(s)
    character, intent(in) :: letter
    character(:), allocatable :: s
    character(28), parameter :: glyph(26) = [character(28) :: &
      '4642 4536160503123243', '0802 0516364543321203', '4536160503123243', '4842 4536160503123243', &
      '04444536160503123243', '48382722 1636', '4641301001 4536160503123243', '0802 0516364542', &
      '2622 2828', '26211000 2828', '0802 4603 1542', '2822', &
      '0602 05162522 25364542', '0602 0516364542', '163645433212030516', '0600 0516364543321203', &
      '4640 4536160503123243', '0602 05163645', '45361605143443321203', '28233242 0646', &
      '0603123243 4642', '062246', '0612253246', '0642 0246', &
      '0622 4610', '06460242']

    s = trim(glyph(iachar(letter) - iachar('a') + 1))
  end function small

  pure function figure(letter) result(s)
    character, intent(in) :: letter
    character(:), allocatable :: s

    select case (letter)
    case ('0'); s = '183847433212030718'
    case ('1'); s = '172822 1232'
    case ('2'); s = '07183847460242'
    case ('3'); s = '0718384746354443321203 3525'
    case ('4'); s = '32380444'
    case ('5'); s = '480805354443321203'
    case ('6'); s = '38180703123243443505'
    case ('7'); s = '084812'
    case ('8'); s = '15354443321203041506071838474635'
    case ('9'); s = '12324347381807061545'
    case ('.'); s = '2222'
    case (','); s = '2211'
    case (':'); s = '2222 2525'
    case ('-'); s = '1535'
    case ('+'); s = '0545 2327'
    case ('='); s = '0444 0646'
    case ('/'); s = '0248'
    case ('('); s = '38262432'
    case (')'); s = '18262412'
    case ('%'); s = '0248 0707 4343'
    case default; s = ''
    end select
  end function figure
end module lettering
